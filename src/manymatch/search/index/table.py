"""An index in a table of LanceDB, on a disk or in an object store: several hosts may read it.

A row holds an item as `items.parquet` does, the parts of its embeddings, and its codes; `rank` is a
number that gives the order of the items. In a table for searches by candidates, `vector` stands in
the place of the codes. The manifest is metadata of the column `id`. Every change is one commit,
which makes a new version, and an open table stays at its version.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import ValidationError

from manymatch.search.index.manifest import KEY, REMEDY, TABLE, Manifest, is_table, seal_of
from manymatch.search.index.stored import OWN, Stored, embeddings_of, items_fault
from manymatch.util.errors import ConfigError, DataError, ManyMatchError, first_line
from manymatch.util.files import storage_errors

if TYPE_CHECKING:
    from manymatch.methods.shared.embeddings import Embeddings
    from manymatch.model.answer import Side
    from manymatch.model.model import Model
    from manymatch.search.index.queries import AnyScanner
    from manymatch.search.scan.codes import Codes
    from manymatch.util.seal import Seal

PARTS = ("vectors", "log_variance", "candidate", "mask")
OTHERS = ("rank", "codes", "errors", "vector")
"""The columns beside the items and their parts."""
_PATIENCE = {
    "connect_timeout": "10s",
    "timeout": "60s",
    "client_max_retries": "3",
    "client_retry_timeout": "20",
}
"""How long an object store may take."""
_PLACE = re.compile(r", /\S+\.rs:\d+:\d+.*")
"""The end of the engine's errors: a line of its source."""


@contextmanager
def engine_faults(place: str) -> Iterator[None]:
    """Errors of the engine in the block are a `DataError` of one line."""
    try:
        yield
    except ManyMatchError:
        raise
    except (OSError, ValueError, RuntimeError, KeyError, pa.ArrowException) as error:
        raise _fault(place, error) from None
    except Exception as error:
        if type(error).__name__ != "RustPanic":
            raise
        raise _fault(place, error) from None


def _fault(place: str, error: Exception) -> DataError:
    line = _PLACE.sub("", first_line(error))[:300]
    return DataError(f"{place}: the table cannot be used ({line}). Check the place. {REMEDY}")


def connected(place: str) -> Any:
    """The database at `place`, a folder or a URL.

    Raises:
        ConfigError: LanceDB is not installed.
        DataError: the place cannot be reached.
    """
    os.environ.setdefault("LANCEDB_LOG", "error")  # read at the import; no warnings on the terminal
    try:
        import lancedb
    except ModuleNotFoundError:
        raise ConfigError(
            f"{place}: a table of LanceDB, and the package 'lancedb' is missing. Install it: "
            "pip install 'manymatch[lance]'."
        ) from None
    with engine_faults(place):
        return lancedb.connect(place, storage_options=_PATIENCE if "://" in place else None)


def current(place: str) -> Any:
    """The newest version of the table at `place`.

    Raises:
        DataError: there is no such table, or the table is damaged.
    """
    if not has_table(place):
        raise DataError(f"{place}: not an index, because there is no table '{TABLE}'. {REMEDY}")
    with engine_faults(place):
        return connected(place).open_table(TABLE)


def has_table(place: str) -> bool:
    """Whether there is a table, whole or damaged; a `DataError` if the place cannot be reached."""
    if place.startswith("file://") and not Path(place.removeprefix("file://")).is_dir():
        return False  # the engine would make the folder
    database = connected(place)
    with engine_faults(place):
        return TABLE in database.list_tables(limit=10_000).tables


def manifest_of(place: str, schema: pa.Schema) -> Manifest:
    """The manifest in the metadata of a table.

    Raises:
        DataError: the table is of no index.
    """
    metadata: Mapping[bytes, bytes] = {}
    if "id" in schema.names:
        metadata = schema.field("id").metadata or {}
    try:
        return Manifest.model_validate_json(metadata.get(KEY.encode(), b""))
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise DataError(f"{place}: not a table of an index ({problem}). {REMEDY}") from None


@dataclass(frozen=True)
class Version:
    """A version of the table at `place`: as long as it is the newest, nothing has changed."""

    place: str
    number: int

    @classmethod
    def newest(cls, place: str) -> Version:
        """The newest version of the table; raises the same as `current`."""
        return cls(place, current(place).version)


def state_of(place: str | Path) -> Seal | Version:
    """What differs when the index at `place` was replaced or changed: its seal, or the version of
    its table.

    Raises:
        DataError: there is no index, or the index is damaged.
    """
    if not is_table(place):
        return seal_of(Path(place))
    return Version.newest(str(place))


@dataclass(frozen=True)
class Table(Stored):
    """The items of a version of a table, in their order; embeddings stay in the table.

    Attributes:
        version: what was opened.
        ids, ranks: `(n,)`, what the engine calls each row, and the row's `rank`.
    """

    version: Version = field(kw_only=True)
    ids: NDArray[np.int64] = field(kw_only=True)
    ranks: NDArray[np.float64] = field(kw_only=True)
    _table: Any = field(kw_only=True)

    @classmethod
    def at(cls, place: str) -> tuple[Manifest, Table]:
        """The newest version of the table at `place`, and its manifest.

        Raises:
            DataError: as for `current`, or the columns are not those of an index.
        """
        table = current(place)
        with engine_faults(place):
            version = Version(place, table.version)
            table.checkout(version.number)
            manifest = manifest_of(place, table.schema)
            names = [name for name in table.schema.names if name not in (*PARTS, *OTHERS)]
            if missing := {*OWN, "vectors", "rank"} - {"row", *table.schema.names}:
                raise DataError(f"{place}: no column '{min(missing)}' in the table. {REMEDY}")
            rows = table.search().select([*names, "rank"]).with_row_id(True).to_arrow()
            ranks = rows["rank"].to_numpy()
            order = np.argsort(ranks, kind="stable")
            rows = rows.take(order)
            items = rows.select(names).add_column(0, "row", pa.array(np.arange(len(rows))))
            items = items.replace_schema_metadata(None)
            for number, name in enumerate(items.column_names):  # without the manifest
                plain = pa.field(name, items.schema.field(name).type)
                items = items.set_column(number, plain, items[name])
            if fault := items_fault(items):
                raise DataError(f"{place}: {fault}. {REMEDY}")
        manifest = manifest.model_copy(update={"items": len(items)})
        ids = rows["_rowid"].to_numpy().astype(np.int64)
        opened = cls(
            Path(place), items, {}, version=version, ids=ids, ranks=ranks[order], _table=table
        )
        return manifest, opened

    @property
    def schema(self) -> pa.Schema:
        schema: pa.Schema = self._table.schema
        return schema

    @property
    def searches_candidates(self) -> bool:
        """Whether the engine finds candidates, by the column `vector`."""
        return "vector" in self.schema.names

    def embeddings(self) -> Embeddings:
        """All embeddings, read into memory."""
        return self.taken(np.arange(len(self)))

    def taken(self, rows: NDArray[np.int64]) -> Embeddings:
        wanted = self.ids[rows]
        names = [name for name in PARTS if name in self.schema.names]
        with engine_faults(self.version.place):
            query = self._table.take_row_ids(wanted.tolist()).select(names).with_row_id()
            found = query.to_arrow().combine_chunks()
            own = found["_rowid"].to_numpy().astype(np.int64)
            order = np.argsort(own)
            places = order[np.searchsorted(own, wanted, sorter=order)]
            arrays = {name: _array(found[name])[places] for name in names}
        return embeddings_of(arrays)

    def scanner(self, model: Model, side: Side, beta: float | None) -> AnyScanner:
        """A search of the items, by the codes of the table or by candidates of the engine."""
        from manymatch.search.index.candidates import CandidateScanner
        from manymatch.search.scan.scanner import Scanner

        first = self.taken(np.arange(1))
        if self.searches_candidates:
            return CandidateScanner(model, self, first, side, beta)
        codes = self._codes(model.preset.method, side) if "codes" in self.schema.names else None
        return Scanner(model, first, codes, side, beta, take=self.taken, count=len(self))

    def candidates(self, vector: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """The rows of `count` items that the engine finds for a vector. In a table with an index of
        vectors these need not be the items with the largest products."""
        with engine_faults(self.version.place):
            query = self._table.search(vector, vector_column_name="vector").distance_type("dot")
            found = query.select(["rank", "_distance"]).limit(count).to_arrow()
        return np.searchsorted(self.ranks, found["rank"].to_numpy())

    @cached_property
    def quantiser_arrays(self) -> dict[str, NDArray[np.float64]]:
        """The arrays of the quantiser of the codes."""
        packed = (self.schema.metadata or {}).get(KEY.encode(), b"")
        with engine_faults(self.version.place):
            arrays = np.load(io.BytesIO(base64.b64decode(packed)), allow_pickle=False)
            return {name: arrays[name] for name in arrays}

    def _codes(self, method: str, side: Side) -> Codes:
        """The codes, read into memory."""
        import torch

        from manymatch.search.scan.codes import BLOCK, Codes, Sizes
        from manymatch.search.scan.quantiser import Quantiser

        place = self.version.place
        arrays = {name: torch.from_numpy(a) for name, a in self.quantiser_arrays.items()}
        elements = int(arrays.pop("elements"))
        with engine_faults(place):
            query = self._table.search().select(["codes", "errors", "rank"])
            rows = query.to_arrow().combine_chunks()
            order = np.argsort(rows["rank"].to_numpy(), kind="stable")
            codes, errors = (
                _array(rows[name]).reshape(len(rows), elements, -1) for name in ("codes", "errors")
            )
            blocks = [order[at : at + BLOCK] for at in range(0, len(order), BLOCK)]
            planes = [codes[block].transpose(1, 0, 2).reshape(-1) for block in blocks]
            numbers = [errors[block].transpose(2, 1, 0).reshape(-1) for block in blocks]
        quantiser = Quantiser(**arrays)
        bounds = 3 if quantiser.basis is None else 4
        # A vector is at most as long as its code, what the code leaves out, and the mean.
        longest = float(errors[:, :, 1:bounds].sum(2).max())
        if quantiser.means is not None:
            longest += float(quantiser.means.norm(dim=2).max())
        values = method, side, len(rows), elements, codes.shape[2], errors.shape[2], longest
        sizes = Sizes.model_validate(dict(zip(Sizes.model_fields, values, strict=True)))
        return Codes(sizes, np.concatenate(planes), np.concatenate(numbers), quantiser, place)

    def check_rows(self) -> None:
        """Read everything, which finds damaged files.

        Raises:
            DataError: a file of the table is damaged or missing.
        """
        with engine_faults(self.version.place):
            for _ in self._table.search().to_batches():
                pass


def _array(column: pa.ChunkedArray | pa.Array) -> NDArray[Any]:
    """`(n, ...)`: a column of lists, which all have one size."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    shape = [len(column)]
    while pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type):
        inner = column.flatten()
        if len(inner) % len(column):
            raise ValueError("lists of different sizes in one column")
        shape.append(len(inner) // len(column))
        column = inner
    flat: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return flat.reshape([shape[0], *shape[1:]])


@contextmanager
def spooled(batches: Iterator[pa.Table], schema: pa.Schema, place: str) -> Iterator[Any]:
    """The batches in a temporary file, from which the engine reads: batches that the engine itself
    reads from a table would wait for the engine for ever."""
    with (
        storage_errors(Path(place)),
        TemporaryFile(dir=None if "://" in place else Path(place).parent) as file,
    ):
        with pa.ipc.new_stream(file, schema) as writer:
            for batch in batches:
                writer.write_table(batch.cast(schema))
        file.seek(0)
        yield pa.ipc.open_stream(file)


def lists(array: NDArray[Any], inner: bool = False) -> pa.Array:
    """A column of lists of one size, of an array `(n, D)`; with `inner` of lists of vectors, of an
    array `(n, K, D)`, which the engine calls a multi-vector."""
    flat = pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), array.shape[-1])
    if not inner:
        return flat
    ends = np.arange(0, len(flat) + 1, array.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), flat)


def packed(manifest: Manifest) -> dict[str, str]:
    """The manifest as metadata of a column."""
    return {KEY: json.dumps(manifest.model_dump())}
