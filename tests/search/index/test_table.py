"""An index in a table of LanceDB answers as one in files does, and follows its source."""

from __future__ import annotations

import pytest

from manymatch import Index
from manymatch.search.index.table import Table

from .conftest import Album

pytest.importorskip("lancedb")


@pytest.fixture
def table(album: Album) -> Album:
    """The album, whose index is a table."""
    album.index(engine="lance")
    return album


def same(one: Index, other: Index) -> None:
    """Compare the answers of two indexes of the same items."""
    pictures = [item["path"] for item in one._stored.items.to_pylist()]
    assert pictures == [item["path"] for item in other._stored.items.to_pylist()]
    for where in (None, "path glob '1/*' and size > 0"):
        for query in ("two dogs", "a red bird above a table"):
            ours, theirs = (index.search(query, 5, where=where) for index in (one, other))
            assert ours.results == theirs.results and ours.exact and theirs.exact
    id = ours.results[0].id
    assert one.similar(id, 3).results == other.similar(id, 3).results
    assert one.item(id) == other.item(id)
    assert one.picture(id) == other.picture(id)


def test_a_table_answers_as_files_do_before_and_after_an_update(table: Album) -> None:
    files = Album(table.root / "files", table.model, table.model_folder)
    files.pictures = table.pictures
    files.index()
    same(table.open(), files.open())
    version = Table.at(str(table.target))[1].version
    assert table.index().embedded == 0 and Table.at(str(table.target))[1].version == version
    (table.pictures / "0" / "00.png").unlink()
    (table.pictures / "0" / "03.png").rename(table.pictures / "1" / "renamed's.png")
    table.draw("1/01.png", 100)
    table.draw("1/between.png", 101)
    table.draw("9/last.png", 102)
    former = table.open()
    ours, theirs = table.index(), files.index()
    assert ours == theirs and (ours.added, ours.changed, ours.renamed, ours.removed) == (2, 1, 1, 1)
    same(table.open(), files.open())
    assert len(former) == 12 and len(former.search("two dogs", 20).results) == 12
    table.open().check()
