"""Shards hold what tables and store hold, byte for byte the same each time, or are refused."""

import io
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import webdataset
from full_disk import error_on_full_disk
from PIL import Image
from tiny_data import MADE_BY, make_data

from manymatch.features.store import FeatureStore
from manymatch.shards.read import read_index, samples
from manymatch.util.errors import DataError
from manymatch.util.files import sha256
from manymatch.util.seal import open_sealed


@pytest.fixture
def data(tmp_path):
    return make_data(tmp_path, {"train": 6, "test": 2})


def edit(path, change):
    """Rewrite a table with its list of rows changed."""
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def test_index_counts_splits(tiny):
    index = read_index(tiny.shards)
    train = index.split("train")
    assert train.shards == ["train-000000.tar", "train-000001.tar", "train-000002.tar"]
    assert train.shard_images == [10, 10, 4]
    assert (train.images, train.captions) == (24, 72)
    assert (index.width, index.max_regions, index.boxes) == (8, 4, True)
    assert (index.dataset, index.features) == ("tiny", "grid")
    assert index.attributes == MADE_BY
    assert set(index.splits) == {"train", "validation", "test"}
    hashes = open_sealed(tiny.shards, "").hashes
    assert set(hashes) == {path.name for path in tiny.shards.iterdir()} - {"SEAL.json"}
    assert all(sha256(tiny.shards / name) == digest for name, digest in hashes.items())


def test_samples_hold_tables_and_features(tiny):
    result = list(samples(tiny.shards, "test"))
    table = [row for row in pq.read_table(tiny.captions).to_pylist() if row["split"] == "test"]
    graphs = {row["caption_id"]: row for row in pq.read_table(tiny.graphs).to_pylist()}
    captions = [caption for sample in result for caption in sample.captions]
    assert [(c.id, c.text) for c in captions] == [(r["caption_id"], r["caption"]) for r in table]
    for caption in captions:
        row = graphs[caption.id]
        assert list(caption.graph.objects) == row["objects"]
        assert [relation.label for relation in caption.graph.relations] == [
            relation["label"] for relation in row["relations"]
        ]
    with FeatureStore(tiny.store) as store:
        for sample in result:
            features, counts, boxes = store.read([store.image_ids.index(sample.image_id)])
            assert sample.features.dtype == np.float16
            assert np.array_equal(sample.features, features[0, : counts[0]])
            assert np.array_equal(sample.boxes, boxes[0, : counts[0]])


def test_webdataset_itself_reads_the_shards(tiny):
    shards = webdataset.WebDataset(str(tiny.shards / "train-000000.tar"), shardshuffle=False)
    result = list(shards.decode())
    assert len(result) == 10
    assert result[3]["json"]["image_id"] == "train.3"
    assert result[3]["features.npy"].shape[1] == 8


def test_thumbnails_where_there_are_pictures_and_no_times(tiny):
    result = list(samples(tiny.shards, "test"))
    assert [sample.thumbnail is not None for sample in result] == [True, False] * 4
    with Image.open(io.BytesIO(result[0].thumbnail or b"")) as image:
        assert (image.format, max(image.size)) == ("JPEG", 16)
    with tarfile.open(tiny.shards / "train-000000.tar") as shard:  # no times, users and groups
        assert {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in shard} == {(0, 0, 0, "", "")}


def test_same_input_gives_same_bytes(data):
    first = {path.name: path.read_bytes() for path in data.write_shards(4).iterdir()}
    again = {path.name: path.read_bytes() for path in data.write_shards(4).iterdir()}
    assert first == again
    assert len(first) == 5


def changed(table, change):
    return lambda data: edit(getattr(data, table), change)


def both(change):
    """Changes the caption table and the scene graphs alike."""
    return lambda data: [edit(table, change) for table in (data.captions, data.graphs)]


def no_file(data):
    pq.write_table(pq.read_table(data.captions).drop_columns(["file"]), data.captions)


NEW = {"caption_id": "x", "image_id": "new"}
FAULTS = [
    (changed("graphs", lambda rows: rows.insert(0, rows.pop(1))), "row 0 belongs to caption"),
    (changed("graphs", lambda rows: rows.pop()), "23 graphs for 24 captions"),
    (changed("graphs", lambda rows: rows[0].update(objects=[])), "'train.0#0': a scene graph"),
    (changed("captions", lambda rows: rows.insert(1, rows.pop(5))), "row 1 belongs to caption"),
    (both(lambda rows: rows.append(rows.pop(0))), "'train.0' are not in consecutive rows"),
    (
        both(lambda rows: rows.append({**rows[-1], **NEW})),
        "1 images are in .*parquet but not .*'new'",
    ),
    (
        both(lambda rows: rows.__delitem__(slice(-3, None))),
        "1 images are in .*h5 but not .*'test.1'",
    ),
    (
        changed("captions", lambda rows: [row.update(file="../../x.jpg") for row in rows[:3]]),
        "outside",
    ),
    (lambda data: data.graphs.unlink(), "the stage 'scene_graphs'"),
    (no_file, "no column file"),
]


@pytest.mark.parametrize(("spoil", "words"), FAULTS)
def test_tables_and_stores_that_do_not_match_are_refused(data, spoil, words):
    spoil(data)
    with pytest.raises(DataError, match=words) as caught:
        data.write_shards()
    assert "\n" not in str(caught.value) and not data.shards.exists()


def test_full_disk_is_one_line_and_keeps_the_earlier_shards(data):
    before = {path.name: path.read_bytes() for path in data.write_shards().iterdir()}
    error = error_on_full_disk(data.write_shards, room=4096)
    assert error.startswith(f"StorageError: {data.shards}: no space left")
    assert {path.name: path.read_bytes() for path in data.shards.iterdir()} == before
    assert not list(data.folder.glob("*.partial"))


def test_missing_index_and_unknown_split(data, tmp_path):
    with pytest.raises(DataError, match="the stage 'shards' first"):
        read_index(tmp_path / "nothing")
    with pytest.raises(DataError, match="no split 'tset'; did you mean 'test'"):
        list(samples(data.write_shards(), "tset"))
