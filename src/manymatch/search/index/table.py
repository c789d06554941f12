"""An index in a table of LanceDB, on a disk or in an object store: several hosts may read it.

A row holds an item as `items.parquet` does, the parts of its embeddings, and its codes; `rank` is a
number that gives the order of the items. In a table for searches by candidates, `vector` stands in
the place of the codes: the mean of the vectors whose products the method's score reads, with the
mean of what is added to the products. The manifest is metadata of the column `id`. Every change is
one commit, which makes a new version, and an open table stays at its version.
"""

import base64
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from manymatch.search.index.database import Version, array_of, current, engine_faults
from manymatch.search.index.manifest import KEY, REMEDY, Manifest, is_table, seal_of
from manymatch.search.index.stored import OWN, Stored, check_arrays, embeddings_of, items_fault
from manymatch.util.errors import DataError, content_of, first_line
from manymatch.util.numpy_file import FAULTS, ZIP_FAULTS

if TYPE_CHECKING:
    from torch import Tensor

    from manymatch.methods.shared.embeddings import Embeddings
    from manymatch.model.answer import Side
    from manymatch.model.model import Model
    from manymatch.search.scan.codes import Codes
    from manymatch.search.scan.quantiser import Quantiser
    from manymatch.search.scan.scanner import Scanner
    from manymatch.util.seal import Seal

PARTS = ("vectors", "log_variance", "candidate", "mask")
OTHERS = ("rank", "codes", "errors", "vector")
"""The columns beside the items and their parts."""
_CANDIDATES, _TIMES = 512, 8
"""The fewest candidates of a query, and candidates for each result that is asked for."""
_PROBES = 64
"""Parts of an index of vectors that a query reads: all of them up to about 250,000 items."""
_MOST_BYTES = 2**28
"""The bytes of the quantiser's arrays in the metadata of a table."""
_ALL = 8_192
"""Up to so many items that a filter selects, all are scored."""


def opened(place: str | Path) -> "tuple[Seal | Version, Manifest, Stored]":
    """The index at `place`: its state, its manifest, its items.

    Raises:
        DataError: there is no index, or the index is damaged.
    """
    if is_table(place):
        manifest, table = Table.at(str(place))
        return table.version, manifest, table
    seal = seal_of(Path(place))
    manifest = Manifest.read(seal)
    for name in seal.sizes:
        seal.state(name)
    return seal, manifest, Stored.open(Path(place))


def state_of(place: str | Path) -> "Seal | Version":
    """What differs when the index at `place` was replaced or changed: its seal, or the version of
    its table; raises the same as `opened`."""
    if is_table(place):
        return Version(str(place), current(str(place)).version)
    return seal_of(Path(place))


def manifest_of(place: str, schema: pa.Schema) -> Manifest:
    """The manifest in the metadata of a table.

    Raises:
        DataError: the table is of no index.
    """
    metadata: Mapping[bytes, bytes] = {}
    if "id" in schema.names:
        metadata = schema.field("id").metadata or {}
    with content_of(place, "a table of an index", REMEDY):
        return Manifest.model_validate_json(metadata.get(KEY.encode(), b""))


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
    def at(cls, place: str) -> "tuple[Manifest, Table]":
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
            ranks = _ranks(rows["rank"])
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

    def embeddings(self) -> "Embeddings":
        """All embeddings, read into memory."""
        return self.taken(np.arange(len(self)))

    def taken(self, rows: NDArray[np.int64]) -> "Embeddings":
        wanted = self.ids[rows]
        names = [name for name in PARTS if name in self.schema.names]
        with engine_faults(self.version.place):
            query = self._table.take_row_ids(wanted.tolist()).select(names).with_row_id()
            found = query.to_arrow().combine_chunks()
            own = found["_rowid"].to_numpy().astype(np.int64)
            order = np.argsort(own)
            places = order[np.searchsorted(own, wanted, sorter=order)]
            arrays = {name: array_of(found[name])[places] for name in names}
        place = self.version.place
        check_arrays(arrays, len(rows), lambda name: f"{place}: column '{name}'")
        return embeddings_of(arrays)

    def scanner(self, model: "Model", side: "Side", beta: float | None) -> "Scanner":
        """A search of the items, by the codes of the table or by candidates of the engine."""
        from manymatch.search.scan.scanner import Scanner

        first, codes, find = self.taken(np.arange(1)), None, None
        if self.searches_candidates:
            find = self.find
        elif "codes" in self.schema.names:
            codes = self._codes(model.preset.method, side)
        of_table: dict[str, Any] = {"take": self.taken, "count": len(self), "find": find}
        return Scanner(model, first, codes, side, beta, **of_table)

    def find(
        self, vectors: "Tensor", k: int, included: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.int64], bool]:
        """Candidates for a query with these vectors, and whether these are all items that may be in
        the result. The engine finds the items by the mean of all products. In a table with an index
        of vectors these need not be the items with the largest mean."""
        rows = np.arange(len(self)) if included is None else np.flatnonzero(included)
        wanted = max(_CANDIDATES, _TIMES * k)
        if included is not None:  # so that enough of them are included
            wanted = wanted * len(self) // max(1, len(rows))
        if wanted >= len(self) or (included is not None and len(rows) <= _ALL):
            return rows, True
        mean = np.append(vectors.mean(0).numpy(), 1).astype(np.float32)
        with engine_faults(self.version.place):
            query = self._table.search(mean, vector_column_name="vector").distance_type("dot")
            query = query.nprobes(_PROBES).select(["rank", "_distance"])
            found = query.limit(wanted).to_arrow()
        rows = np.searchsorted(self.ranks, found["rank"].to_numpy())
        return (rows if included is None else rows[included[rows]]), False

    @cached_property
    def quantiser(self) -> "tuple[int, Quantiser]":
        """The vectors of an item in the codes, 0 without codes; and what made the codes.

        Raises:
            DataError: the metadata of the table is damaged.
        """
        from manymatch.search.scan.codes import ARRAYS, checked_array
        from manymatch.search.scan.quantiser import Quantiser

        place = f"{self.version.place}: the metadata of the table"
        packed = (self.schema.metadata or {}).get(KEY.encode(), b"")
        try:
            with np.load(io.BytesIO(base64.b64decode(packed)), allow_pickle=False) as stored:
                if sum(member.file_size for member in stored.zip.infolist()) > _MOST_BYTES:
                    raise ValueError("too large")
                arrays = {name: stored[name] for name in stored}
            elements = int(arrays.pop("elements"))
        except (*FAULTS, *ZIP_FAULTS, AttributeError, KeyError, TypeError) as error:
            raise DataError(f"{place} is damaged ({first_line(error)}). {REMEDY}") from None
        if unknown := arrays.keys() - ARRAYS.keys():
            raise DataError(f"{place} has an array '{min(unknown)}'. {REMEDY}")
        parts = {name: checked_array(a, ARRAYS[name], place) for name, a in arrays.items()}
        return elements, Quantiser(**parts)

    def _codes(self, method: str, side: "Side") -> "Codes":
        """The codes, read into memory."""
        from manymatch.search.scan.codes import BLOCK, Codes, Sizes

        place = self.version.place
        elements, quantiser = self.quantiser
        with engine_faults(place):
            query = self._table.search().select(["codes", "errors", "rank"])
            rows = query.to_arrow().combine_chunks()
            order = np.argsort(rows["rank"].to_numpy(), kind="stable")
            codes, errors = (
                array_of(rows[name]).reshape(len(rows), elements, -1)
                for name in ("codes", "errors")
            )
            if (codes.dtype, errors.dtype) != (np.int8, np.float32):
                raise ValueError("the columns 'codes' and 'errors' are of other types")
            blocks = [order[at : at + BLOCK] for at in range(0, len(order), BLOCK)]
            planes = [codes[block].transpose(1, 0, 2).reshape(-1) for block in blocks]
            numbers = [errors[block].transpose(2, 1, 0).reshape(-1) for block in blocks]
            bounds = 3 if quantiser.basis is None else 4
            # A vector is at most as long as its code, what the code leaves out, and the mean.
            longest = float(errors[:, :, 1:bounds].sum(2).max())
            if quantiser.means is not None:
                longest += float(quantiser.means.norm(dim=2).max())
            values = method, side, len(rows), elements, codes.shape[2], errors.shape[2], longest
            sizes = Sizes.model_validate(dict(zip(Sizes.model_fields, values, strict=True)))
        return Codes(sizes, np.concatenate(planes), np.concatenate(numbers), quantiser, place)

    def check_rows(self) -> None:
        """Read everything: a `DataError` for a file of the table that is damaged or missing."""
        with engine_faults(self.version.place):
            for _ in self._table.search().to_batches():
                pass


def _ranks(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """The column `rank`; a `ValueError` if its cells give no order."""
    ranks: NDArray[np.float64] = column.to_numpy()
    if column.type != pa.float64() or not np.isfinite(ranks).all():
        raise ValueError("a cell of the column 'rank' is no number")
    if not len(ranks) or len(np.unique(ranks)) < len(ranks):
        raise ValueError("no items, or two items of one rank")
    return ranks


def packed(manifest: Manifest) -> dict[str, str]:
    """The manifest as metadata of a column."""
    return {KEY: json.dumps(manifest.model_dump())}
