"""A table of LanceDB that somebody else wrote: what does not fit is one line."""

import base64
import io
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pytest

from manymatch import Index
from manymatch.search.index.manifest import KEY, TABLE
from manymatch.util.errors import DataError

from .conftest import Album

pytestmark = pytest.mark.skipif(
    find_spec("lancedb") is None, reason="no lancedb, whose import takes seconds"
)
NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def rows(vsepp, vsepp_folder, tmp_path_factory):
    """All rows of a table, with its metadata."""
    import lancedb

    album = Album(tmp_path_factory.mktemp("album"), vsepp, vsepp_folder)
    for number in range(4):
        album.draw(f"{number}.png", number)
    album.index(engine="lance")
    return lancedb.connect(str(album.target)).open_table(TABLE).to_arrow()


def packed(content):
    return lambda rows: rows.replace_schema_metadata({KEY: base64.b64encode(content)})


def quantiser(**changes):
    """Other arrays of the quantiser; None: without the array."""

    def changed(rows):
        content = io.BytesIO(base64.b64decode(rows.schema.metadata[KEY.encode()]))
        arrays = dict(np.load(content)) | changes
        stream = io.BytesIO()
        np.savez(stream, **{name: a for name, a in arrays.items() if a is not None})
        return packed(stream.getvalue())(rows)

    return changed


def column(name, cells, kind=None):
    """Another column, of which the function gives each cell; with the type that it had."""

    def changed(rows):
        place, of = rows.column_names.index(name), kind or rows.schema.field(name).type
        return rows.set_column(place, name, pa.array(map(cells, range(len(rows))), of))

    return changed


def filled(name, value):
    """A column of lists, all of whose numbers are `value`."""

    def changed(rows):
        cells = rows[name].to_pylist()

        def other(cell):
            return list(map(other, cell)) if isinstance(cell, list) else value

        return column(name, lambda row: other(cells[row]))(rows)

    return changed


CHANGES = [
    *(packed(content) for content in (b"", b"PK", b"\x93NUMPY\x01\x00v\x00")),
    lambda rows: rows.replace_schema_metadata({KEY: b"!"}),
    *(quantiser(elements=value) for value in (None, NAN, 0, 7, np.ones(5), "x")),
    *(quantiser(further=np.ones(2)), quantiser(basis=np.ones((3, 3)))),
    *(quantiser(means=value) for value in (np.ones(3), np.full((1, 1, 1), NAN), np.array("x"))),
    *(column("rank", cells) for cells in (lambda row: None, lambda row: 1.0, lambda row: NAN)),
    *(column(name, str, pa.string()) for name in ("rank", "codes", "errors", "vectors", "size")),
    column("vectors", lambda row: [0.5], pa.list_(pa.float32(), 1)),
    *(filled("errors", value) for value in (INF, -1.0)),
    filled("vectors", NAN),
    column("vectors", lambda row: None),
    lambda rows: rows.slice(0, 0),
    lambda rows: rows.drop_columns(["vectors"]),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_does_not_fit_is_one_line(change, rows, vsepp, tmp_path):
    import lancedb

    changed = change(rows)
    place = tmp_path / "other"
    lancedb.connect(str(place)).create_table(TABLE, changed, schema=changed.schema)
    with pytest.raises(DataError) as raised:
        Index.open(place, vsepp).search("a red bird")
    assert str(raised.value).isprintable()
