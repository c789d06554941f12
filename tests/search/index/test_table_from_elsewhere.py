"""A table of LanceDB that somebody else wrote: what does not fit is one line."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from manymatch import Index, Model
from manymatch.search.index.manifest import KEY, TABLE
from manymatch.util.errors import DataError

from .conftest import Album

pytestmark = pytest.mark.skipif(
    find_spec("lancedb") is None, reason="no lancedb, whose import takes seconds"
)
Change = Callable[[pa.Table], pa.Table]
NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def rows(vsepp: Model, vsepp_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """All rows of a table, with its metadata."""
    import lancedb

    album = Album(tmp_path_factory.mktemp("album"), vsepp, vsepp_folder)
    for number in range(4):
        album.draw(f"{number}.png", number)
    album.index(engine="lance")
    return lancedb.connect(str(album.target)).open_table(TABLE).to_arrow()


def packed(content: bytes) -> Change:
    return lambda rows: rows.replace_schema_metadata({KEY: base64.b64encode(content)})


def quantiser(**changes: Any) -> Change:
    """Other arrays of the quantiser; None: without the array."""

    def changed(rows: pa.Table) -> pa.Table:
        content = io.BytesIO(base64.b64decode(rows.schema.metadata[KEY.encode()]))
        arrays = dict(np.load(content)) | changes
        stream = io.BytesIO()
        np.savez(stream, **{name: a for name, a in arrays.items() if a is not None})
        return packed(stream.getvalue())(rows)

    return changed


def column(name: str, cells: Callable[[int], Any], kind: pa.DataType | None = None) -> Change:
    """Another column, of which the function gives each cell; with the type that it had."""

    def changed(rows: pa.Table) -> pa.Table:
        place, of = rows.column_names.index(name), kind or rows.schema.field(name).type
        return rows.set_column(place, name, pa.array(map(cells, range(len(rows))), of))

    return changed


def filled(name: str, value: float) -> Change:
    """A column of lists, all of whose numbers are `value`."""

    def changed(rows: pa.Table) -> pa.Table:
        cells = rows[name].to_pylist()

        def other(cell: Any) -> Any:
            return list(map(other, cell)) if isinstance(cell, list) else value

        return column(name, lambda row: other(cells[row]))(rows)

    return changed


CHANGES: list[Change] = [
    *(packed(content) for content in (b"", b"PK", b"\x93NUMPY\x01\x00v\x00")),
    lambda rows: rows.replace_schema_metadata({KEY: b"!"}),
    *(quantiser(elements=value) for value in (None, NAN, INF, 0, -3, 7, np.ones(5), "x")),
    *(quantiser(further=np.ones(2)), quantiser(basis=np.ones((3, 3)))),
    *(quantiser(means=value) for value in (np.ones(3), np.full((1, 1, 1), NAN), np.array("x"))),
    *(column("rank", cells) for cells in (lambda row: None, lambda row: 1.0, lambda row: NAN)),
    column("rank", str, pa.string()),
    *(column(name, str, pa.string()) for name in ("codes", "errors", "vectors", "size")),
    *(
        column(name, lambda row: [0.5], pa.list_(pa.float32(), 1))
        for name in ("codes", "errors", "vectors")
    ),
    *(filled("errors", value) for value in (INF, -1.0)),
    filled("vectors", NAN),
    column("vectors", lambda row: None),
    lambda rows: rows.slice(0, 0),
    lambda rows: rows.drop_columns(["vectors"]),
    lambda rows: rows.drop_columns(["errors"]),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_does_not_fit_is_one_line(
    change: Change, rows: pa.Table, vsepp: Model, tmp_path: Path
) -> None:
    import lancedb

    changed = change(rows)
    place = tmp_path / "other"
    lancedb.connect(str(place)).create_table(TABLE, changed, schema=changed.schema)
    with pytest.raises(DataError) as raised:
        Index.open(place, vsepp).search("a red bird")
    assert str(raised.value).isprintable()
