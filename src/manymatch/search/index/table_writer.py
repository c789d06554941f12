"""Writes an index to a table of LanceDB, or changes the rows that differ, by one commit."""

import base64
import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from manymatch.evaluation.split_results import set_means
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.methods.shared.products import ProductForm
from manymatch.model.answer import Side
from manymatch.model.model import Model
from manymatch.search.index.database import (
    EngineError,
    Version,
    connected,
    current,
    engine_faults,
    has_table,
    lists,
    spooled,
)
from manymatch.search.index.manifest import KEY, REMEDY, TABLE, Manifest, is_table
from manymatch.search.index.stored import Row, Stored
from manymatch.search.index.table import OTHERS, PARTS, Table, manifest_of, packed
from manymatch.search.scan.code_writer import Coder
from manymatch.search.scan.codes import ARRAYS, BLOCK
from manymatch.search.scan.exact import double
from manymatch.search.scan.quantiser import Quantiser
from manymatch.util.errors import CheckpointError, ConfigError, DataError, StorageError
from manymatch.util.progress import say

Engine = Literal["lance", "lance-ivf"]
_KEPT = timedelta(days=1)
"""How long a service may read a former version."""
_FRAGMENTS = 16
"""Small files of a table that are joined. Each update writes one."""
_FEWEST = 4_096
"""Items from which an index of vectors is worth making."""


class TableWriter:
    """Writes the items of an index to the table at `place`.

    Args:
        side: whether the items are images or texts.
        engine, any_model: as for `build`.

    Attributes:
        earlier: the table as it is; None: there is none that can be read, or that has embeddings of
            the model.
        known: the items of the table, whose facts are kept.

    Raises:
        CheckpointError: the table has embeddings of another model.
        StorageError: `place` is a folder of something else.
        ConfigError: the score of the method has no candidates, or the earlier table has another
            kind.
    """

    def __init__(
        self,
        place: str,
        model: Model,
        side: Side,
        engine: Engine | None = None,
        any_model: bool = False,
    ) -> None:
        self._place, self._model, self._side = place, model, side
        former, self.earlier = _earlier(model, place, any_model)
        self.known = former.items if former else None
        of_former = former is not None and former.searches_candidates
        by_candidates = engine == "lance-ivf" if engine else of_former
        if former is not None and by_candidates != of_former:
            raise ConfigError(
                f"{place}: a table of another kind than --engine {engine}. Leave the option, or "
                "choose another place."
            )
        form = model.method.products(side)
        if by_candidates and form is None:
            raise ConfigError(
                f"--engine lance-ivf: the scores of method '{model.preset.method}' have no "
                "candidates. Use --engine lance."
            )
        self._form, self._has_codes = form if by_candidates else None, form and not by_candidates
        self._coder: Coder | None = None

    def write(self, items: pa.Table, rows: Sequence[Row], manifest: Manifest) -> None:
        """Bring the table to these items, whose embeddings are in the `rows`.

        Raises:
            DataError: the table was changed meanwhile, or the engine fails.
        """
        if taken := {*PARTS, *OTHERS} & {*items.column_names}:
            raise ConfigError(
                f"--table: a table of LanceDB has its own column '{min(taken)}'. Rename the column."
            )
        self._manifest = manifest
        earlier, ranks = self.earlier, None
        if earlier is not None and items.schema.equals(earlier.items.schema):
            ranks = _ranks(items, earlier)
        if earlier is None or ranks is None:
            self._create(items, rows)
        else:
            self._change(items, rows, ranks, earlier)

    def _create(self, items: pa.Table, rows: Sequence[Row]) -> None:
        self._coder = self._new_coder(None)
        batches = self._batches(items, rows, np.arange(len(items), dtype=float))
        first = next(batches)
        quantiser: dict[str, Any] = {"elements": np.float64(0)}
        if self._coder is not None:
            quantiser["elements"] = np.float64(self._coder.shape[0])
            for name in ARRAYS:
                if (array := getattr(self._coder.quantiser, name)) is not None:
                    quantiser[name] = array.numpy()
        np.savez(file := io.BytesIO(), **quantiser)
        fields = [
            field.with_metadata(packed(self._manifest)) if field.name == "id" else field
            for field in first.schema
        ]
        schema = pa.schema(fields, metadata={KEY: base64.b64encode(file.getvalue())})

        database, data = connected(self._place), itertools.chain([first], batches)
        remedy = f"If {TABLE}.lance there is damaged, remove it. {REMEDY}"
        with spooled(data, schema, self._place) as reader, engine_faults(self._place, remedy):
            table = database.create_table(TABLE, reader, schema=schema, mode="overwrite")
            if self._form is not None and len(items) >= _FEWEST:
                from lancedb.index import IvfFlat

                table.create_index("vector", config=IvfFlat(distance_type="dot"))

    def _change(
        self, items: pa.Table, rows: Sequence[Row], ranks: NDArray[np.float64], earlier: Table
    ) -> None:
        table = current(self._place)
        if Version(self._place, table.version) != earlier.version:
            raise DataError(f"{self._place}: was changed meanwhile. Run 'manymatch index' again")
        self._coder = self._new_coder(earlier.quantiser[1])
        former = dict(zip(earlier.items["path"].to_pylist(), range(len(earlier)), strict=True))
        places = [former.pop(path, -1) for path in items["path"].to_pylist()]
        facts = _facts(earlier.items)
        changed = [
            number
            for number, (place, row, fact) in enumerate(
                zip(places, rows, _facts(items), strict=True)
            )
            if place < 0 or row[0] is not earlier or row[1] != place or fact != facts[place]
        ]
        removed = ", ".join(repr(float(earlier.ranks[place])) for place in former.values())
        selected = [rows[number] for number in changed]
        numbers = np.array(changed, np.int64)
        batches = self._batches(items.take(numbers), selected, ranks[numbers])
        with (
            spooled(batches, _plain(table.schema), self._place) as reader,
            engine_faults(self._place),
        ):
            if changed:
                merge = table.merge_insert("path").when_matched_update_all()
                merge = merge.when_not_matched_insert_all()
                if removed:
                    merge = merge.when_not_matched_by_source_delete(f"rank in ({removed})")
                merge.execute(reader)
            elif removed:
                table.delete(f"rank in ({removed})")
            if manifest_of(self._place, table.schema) != self._manifest:
                table.update_field_metadata({"path": "id", "metadata": packed(self._manifest)})
            if table.stats()["fragment_stats"]["num_small_fragments"] > _FRAGMENTS:
                table.optimize(cleanup_older_than=_KEPT)

    def _new_coder(self, quantiser: Quantiser | None) -> Coder | None:
        return Coder(self._model, self._side, quantiser) if self._has_codes else None

    def _batches(
        self, items: pa.Table, rows: Sequence[Row], ranks: NDArray[np.float64]
    ) -> Iterator[pa.Table]:
        """The rows of the table, in bounded memory."""
        for start in range(0, len(items), BLOCK):
            batch = items.slice(start, BLOCK).drop_columns(["row"])
            embeddings = _gathered(rows[start : start + BLOCK])
            columns: dict[str, pa.Array] = {"rank": pa.array(ranks[start : start + BLOCK])}
            for name, part in embeddings.parts().items():
                columns[name] = lists(part.numpy(), inner=name == "vectors")
            if self._form is not None:
                columns["vector"] = lists(_mean_vectors(self._form, embeddings))
            elif self._coder is not None:
                codes, errors = self._coder(embeddings)
                columns["codes"] = lists(codes.transpose(0, 1).flatten(1).numpy())
                columns["errors"] = lists(errors.permute(2, 1, 0).flatten(1).numpy())
            for name, column in columns.items():
                batch = batch.append_column(name, column)
            yield batch.combine_chunks()


def _earlier(model: Model, place: str, any_model: bool) -> tuple[Table | None, Table | None]:
    """The table that is at `place` already, if it can be read; and the table again if it has
    embeddings of the model."""
    folder = Path(place.removeprefix("file://"))
    is_far = "://" in place and not place.startswith("file://")
    is_empty = folder.is_dir() and not any(folder.iterdir())  # the engine made it, and a kill came
    if folder.exists() and not is_table(folder) and not is_empty:
        raise StorageError(f"{place}: exists and is not a table of LanceDB. Choose another folder")
    table = None
    if has_table(place):
        try:
            manifest, table = Table.at(place)
            manifest.check_model(model, Path(place))
            return table, table
        except (DataError, CheckpointError) as error:
            if isinstance(error, CheckpointError) and not any_model:
                raise
            # A network fault looks like damage, and a table that is written anew loses its facts.
            if isinstance(error, EngineError) and is_far:
                remedy = f"or remove {TABLE}.lance there if it is damaged"
                raise DataError(f"{error}, {remedy}") from None
            say(f"{error}: every item is embedded anew")
    return table, None


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema without the metadata of its columns."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _mean_vectors(form: ProductForm, items: Embeddings) -> NDArray[np.float32]:
    """`(n, D + 1)`: the means of the vectors of each item, and of what is added to products."""
    exact = double(items)
    vectors = form.rows(exact)
    added = vectors.new_zeros(vectors.shape[:2]) if form.offsets is None else form.offsets(exact)
    both = torch.cat([vectors, added[..., None].expand(*vectors.shape[:2], 1)], 2)
    return set_means(replace(exact, vectors=both)).float().numpy()


def _facts(items: pa.Table) -> list[tuple[Any, ...]]:
    """What the table tells of each item."""
    columns = [items[name].to_pylist() for name in items.column_names if name != "row"]
    return list(zip(*columns, strict=True))


def _gathered(rows: Sequence[Row]) -> Embeddings:
    """The embeddings of the rows, in this order."""
    places: dict[int, list[int]] = {}
    for place, (stored, _) in enumerate(rows):
        places.setdefault(id(stored), []).append(place)
    sources: dict[int, Stored] = {id(stored): stored for stored, _ in rows}
    parts = [
        sources[key].taken(np.array([rows[place][1] for place in own]))
        for key, own in places.items()
    ]
    order = torch.from_numpy(np.argsort(np.concatenate(list(places.values()))))
    return Embeddings.join(parts).map(lambda part: part[order])


def _ranks(items: pa.Table, earlier: Table) -> NDArray[np.float64] | None:
    """A rank for each item: known items keep theirs, new ones lie between. None: the known items
    have another order, or there is no number between two ranks."""
    known = dict(zip(earlier.items["path"].to_pylist(), earlier.ranks.tolist(), strict=True))
    ranks = np.array([known.get(path, np.nan) for path in items["path"].to_pylist()])
    places = np.flatnonzero(~np.isnan(ranks))
    if not len(places):
        return None
    before, after = places[0], len(ranks) - 1 - places[-1]
    edges = [places[0] - before - 1, *places, places[-1] + after + 1]
    values = [ranks[places[0]] - before - 1, *ranks[places], ranks[places[-1]] + after + 1]
    filled = np.interp(np.arange(len(ranks)), edges, values)
    return filled if bool((np.diff(filled) > 0).all()) else None
