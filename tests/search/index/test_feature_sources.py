"""Feature stores and shards are indexed without their pictures."""

import io

import numpy as np
import pytest
from PIL import Image
from tiny_data import MADE_BY, make_data

from manymatch import load
from manymatch.batch.collate import whole_item
from manymatch.features.layout import Layout
from manymatch.features.lite import WIDTH
from manymatch.features.store import FeatureStore
from manymatch.features.writer import FeatureWriter
from manymatch.search.index.sources import source_of
from manymatch.util.errors import ConfigError, DataError, SourceError

from .conftest import Album


@pytest.fixture
def data(tmp_path):
    """40 images of one to four regions, in shards of ten."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    made = make_data(folder, width=WIDTH, variable=True)
    made.write_shards()
    return made


@pytest.fixture
def tiny(tmp_path, make_model):
    folder = make_model("maxmatch", extraction=MADE_BY)
    return Album(tmp_path / "album", load(folder, "cpu"), folder)


def expected(model, path):
    """The embeddings of all images of a store, by image id."""
    with FeatureStore(path) as store:
        features, counts, _ = store.read(range(len(store)))
        real = (rows[:count] for rows, count in zip(features, counts, strict=True))
        items = [whole_item("", rows) for rows in real]
        return dict(zip(store.image_ids, model.encode_items(items).vectors.numpy(), strict=True))


def indexed(tiny):
    stored = tiny.open().stored
    return dict(zip(stored.items["path"].to_pylist(), stored.arrays["vectors"], strict=True))


def compare(tiny, store):
    """Compare the index with the embeddings of the store's features."""
    embeddings, hits = expected(tiny.model, store), indexed(tiny)
    assert hits.keys() == embeddings.keys()
    for name, vectors in hits.items():
        np.testing.assert_allclose(vectors, embeddings[name], atol=1e-6)


def test_only_the_changed_rows_of_a_store_are_embedded(tiny, data):
    assert tiny.index(data.store).embedded == 40
    compare(tiny, data.store)
    assert tiny.index(data.store).embedded == 0
    with FeatureStore(data.store) as store:
        names, (features, counts, _) = store.image_ids, store.read(range(40))
    with FeatureWriter(data.store, Layout(names, 4, WIDTH, attributes=MADE_BY)) as writer:
        for row, (rows, count) in enumerate(zip(features, counts, strict=True)):
            writer.write(row, rows[:count] + (row == 7))
    changes = tiny.index(data.store)
    assert (changes.embedded, changes.changed) == (1, 1)
    compare(tiny, data.store)


def test_shards_bring_splits_captions_and_thumbnails(tiny, data):
    assert tiny.index(data.shards).embedded == 40
    compare(tiny, data.store)
    assert tiny.index(data.shards).embedded == 0
    index = tiny.open()
    hits = index.search("two dogs", 40, where='split == "test"').results
    assert len(hits) == 8 and all(result.path.startswith("test.") for result in hits)
    facts = {result.path: index.item(result.id).facts for result in hits}
    assert facts["test.0"]["file"] == "images/test.0.jpg" and len(facts["test.0"]["captions"]) == 3
    for result in hits:
        number = int(result.path.partition(".")[2])
        if number % 2:
            with pytest.raises(DataError, match="no thumbnail"):
                index.picture(result.id)
        else:
            assert Image.open(io.BytesIO(index.picture(result.id))).size == (16, 11)
    for split, row in (("test", 10**6), ("other", 0)):  # of shards that were written again
        with pytest.raises(DataError, match="no thumbnail"):
            source_of(data.shards).picture({"path": "test.0", "split": split, "row": row})


def test_sources_that_do_not_fit_are_refused(tiny, data, tmp_path, make_model):
    tiny.model = load(make_model("maxmatch"), "cpu")
    for source in (data.store, data.shards):
        with pytest.raises(DataError, match="backbone"):
            tiny.index(source)
    with pytest.raises(DataError, match="no split 'tst'; did you mean 'test'"):
        source_of(data.shards, "tst")
    with pytest.raises(ConfigError, match="--split"):
        source_of(data.store, "test")
    (tmp_path / "a.xyz").touch()
    for name in ("a.xyz", "missing", "missing.h5", "missing.txt"):
        with pytest.raises(SourceError, match=name):
            source_of(tmp_path / name)
    (tmp_path / "b.h5").write_bytes(b"no store")
    with pytest.raises(DataError, match=r"b\.h5"):
        tiny.index(tmp_path / "b.h5")
