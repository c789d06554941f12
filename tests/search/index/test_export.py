"""An export has the sets of an index and the exact best items of queries."""

from importlib.util import find_spec

import numpy as np
import pyarrow.parquet as pq
import pytest

from manymatch.search.index.export import write_sets
from manymatch.util.errors import ConfigError, StorageError

from .conftest import Album

pytestmark = pytest.mark.skipif(
    find_spec("lancedb") is None, reason="no lancedb, whose import takes seconds"
)


def test_an_export_has_the_sets_and_the_exact_best_items(album):
    album.index(engine="lance")
    index, to, texts = album.open(), album.root / "sets", album.root / "texts.txt"
    texts.write_text("two dogs\n\na red bird\n")
    write_sets(index, to, k=3)
    assert read(to, "queries")["best"][4] == [
        result.id for result in index.similar(index.stored.items["id"][4].as_py(), 3).results
    ]
    write_sets(index, to, texts, 3)
    items, asked = read(to, "items"), read(to, "queries")
    vectors, query = (np.array(one["vectors"]) for one in (items, asked))
    assert items["path"] == index.stored.items["path"].to_pylist()
    products = np.einsum("qld,nkd->qn", query, vectors)
    best = np.argsort(-products, axis=1, kind="stable")[:, :3]
    assert asked["best"] == [[items["id"][row] for row in rows] for rows in best]
    np.testing.assert_allclose(asked["scores"], np.take_along_axis(products, best, 1), atol=1e-6)
    write_sets(index, to.with_suffix(".lance"), texts, 3)
    assert read(to.with_suffix(".lance"), "queries") == asked
    by_candidates = Album(album.root / "other", album.model, album.model_folder)
    by_candidates.index(album.pictures, engine="lance-ivf")
    write_sets(by_candidates.open(), to, texts, 3)
    assert read(to, "queries") == asked

    def refused(*_):
        return [answer.model_copy(update={"exact": False}) for answer in index.search_all(["a"])]

    other = by_candidates.open()
    other.search_all = refused
    with pytest.raises(StorageError, match="not an export"):
        write_sets(other, album.pictures)
    (to / "thesis.txt").touch()
    with pytest.raises(StorageError, match=r"holds 'thesis\.txt'"):
        write_sets(index, to, texts, 3)
    (to / "thesis.txt").unlink()
    with pytest.raises(ConfigError, match="not exact"):
        write_sets(other, to, texts, 3)


def read(folder, name):
    if folder.suffix != ".lance":
        return pq.read_table(folder / f"{name}.parquet").to_pydict()
    import lancedb

    return lancedb.connect(folder).open_table(name).to_arrow().to_pydict()
