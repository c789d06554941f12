"""An index in use: the best items for a text, a picture, or another item."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from manymatch.batch.caption_text import caption_fault
from manymatch.model.answer import Answer, Item, Milliseconds, Result, Right, Side
from manymatch.search.index.database import Version
from manymatch.search.index.filters import Filters
from manymatch.search.index.manifest import Manifest
from manymatch.search.index.sources import Source, source_at
from manymatch.search.index.stored import OWN, Stored
from manymatch.search.index.table import Table, opened
from manymatch.util.arguments import checked
from manymatch.util.errors import ConfigError, DataError
from manymatch.util.parquet_file import python_cells

if TYPE_CHECKING:
    from manymatch.model.model import Model
    from manymatch.model.pictures import AnyPicture
    from manymatch.search.index.queries import Queries
    from manymatch.search.scan.exact import Hits
    from manymatch.search.scan.scanner import Scanner
    from manymatch.util.seal import Seal


_PICTURE_COLUMNS = ("row", "path", "size", "split")
"""The columns that a source needs to find a picture."""


class Index:
    """The embeddings of many pictures or captions, to be searched; `Index.open` makes one.

    Several threads may use an index. The model is loaded when a query first needs it.

    Attributes:
        folder: where the index lies.
        manifest: the origin of the items, and the model.
        seal: the seal of the folder as it was opened; the version of a table.
        stored: the items, and where their embeddings are.
        given, beta: the model and the weight that `open` got.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        seal: Seal | Version,
        stored: Stored,
        model: Model | str | Path | None,
        beta: float | None,
    ) -> None:
        self.folder, self.manifest, self.seal = folder, manifest, seal
        self.stored, self.given, self.beta = stored, model, beta
        self._loading = threading.Lock()
        self._ready: tuple[Model, dict[Side, Scanner]] | None = None

    @classmethod
    @checked
    def open(
        cls,
        folder: str | Path,
        model: Model | str | Path | None = None,
        beta: float | None = None,
    ) -> Index:
        """Open the index in `folder`, which `manymatch index` has written.

        Args:
            folder: a folder, or the URL of a table such as "s3://bucket/photos".
            model: the model that made the index, as `load` gives or takes it. None: the folder that
                the index names, or the model of the hub that is on this machine already.
            beta: texts rank pictures by their entities, too (CORA); the weight of the whole text,
                0 to 1. None: no re-ranking.

        Raises:
            DataError: there is no index, or a file of the index is damaged.
            CheckpointError: another model made the index.
            ConfigError: `beta` for an index of captions.
        """
        seal, manifest, stored = opened(folder)
        path = Path(folder)
        if beta is not None and manifest.side == "texts":
            raise ConfigError(f"beta = {beta}: {path} holds captions, and beta ranks pictures.")
        if model is not None and not isinstance(model, str | Path):
            manifest.check_model(model, path)
        stored.check(manifest)
        return cls(path, manifest, seal, stored, model, beta)

    def __len__(self) -> int:
        return len(self.stored)

    def check(self) -> None:
        """Compare all files with the seal, or read all rows of a table.

        Raises:
            DataError: a file is damaged.
        """
        if isinstance(self.stored, Table):
            self.stored.check_rows()
        elif not isinstance(self.seal, Version):
            self.seal.check_all()

    def __contains__(self, id: object) -> bool:
        """Whether the index has the item `id`."""
        return isinstance(id, str) and id in self._rows

    def __repr__(self) -> str:
        method = self.manifest.identity.get("method")
        return f"Index({str(self.folder)!r}, {len(self):,} {self.manifest.side}, {method!r})"

    @property
    def model(self) -> Model:
        """The model of the index."""
        return self._loaded[0]

    def search(
        self,
        query: str | AnyPicture,
        k: int = 20,
        *,
        where: str | None = None,
        least: float | None = None,
    ) -> Answer:
        """The best `k` items for a query.

        Args:
            query: a text; or a picture: a `Path`, a PIL image or an array of bytes.
            where: an expression that selects items by their columns, such as
                `path glob 'birds/*' and date >= 2024-01-31`; docs/search.md describes it.
            least: items with a lower score are left out.

        Raises:
            DataError: the query is empty, too long or cannot be read, or the expression is faulty.
        """
        (answer,) = self.search_all([query], k, where=where, least=least)
        return answer

    def search_all(
        self,
        queries: Sequence[str | AnyPicture],
        k: int = 20,
        *,
        where: str | None = None,
        least: float | None = None,
    ) -> list[Answer]:
        """The best `k` items for each query, as `search` gives them, in one scan of the index.

        Raises:
            DataError: as for `search`; or `queries` is a single query.
        """
        from manymatch.model.pictures import refuse_single
        from manymatch.search.index.queries import pictures, texts

        refuse_single(queries)
        queries = list(queries)
        for query in queries:
            if isinstance(query, str) and (fault := caption_fault(query)):
                raise DataError(f"the query: {fault}")
        selected = None if where is None else self._filters.included(where)
        answers: dict[int, Answer] = {}
        for encoded, is_text in ((texts, True), (pictures, False)):
            rows = [row for row, one in enumerate(queries) if isinstance(one, str) == is_text]
            if rows:
                group = encoded(self.model, [queries[row] for row in rows])
                found = self._answers(group, k, selected, least)
                answers |= dict(zip(rows, found, strict=True))
        return [answers[row] for row in range(len(queries))]

    def similar(
        self, id: str, k: int = 20, *, where: str | None = None, least: float | None = None
    ) -> Answer:
        """The other items that are nearest to the item `id`, as `search` gives them.

        Raises:
            DataError: the index has no such item, or the expression is faulty.
        """
        from manymatch.search.index.queries import Queries

        row = self._row(id)
        others = np.ones(len(self), np.bool_)
        if where is not None:
            others = self._filters.included(where)
        others[row] = False
        embeddings = self.stored.taken(np.array([row]))
        query = Queries([id], embeddings, self.manifest.side, [([], True)])
        (answer,) = self._answers(query, k, others, least)
        return answer

    def item(self, id: str) -> Item:
        """The item `id`.

        Raises:
            DataError: the index has no such item.
        """
        values = self._values(self._row(id), self.stored.items.column_names)
        own = {name: values.pop(name) for name in OWN}
        return Item(**own, facts=values)

    def picture(self, id: str) -> bytes:
        """The picture file of the item `id`; the thumbnail, if shards were indexed.

        Raises:
            DataError: the index has no such item, or the item's file is no longer a regular file in
                the folder that was indexed.
        """
        known = [name for name in _PICTURE_COLUMNS if name in self.stored.items.column_names]
        return self._source.picture(self._values(self._row(id), known))

    def _answers(
        self, query: Queries, k: int, selected: NDArray[np.bool_] | None, least: float | None
    ) -> list[Answer]:
        if not isinstance(k, Integral) or k < 1:
            raise ConfigError(f"k = {k!r}: ask for a number of results, at least 1.")
        if least is not None and not (isinstance(least, Real) and abs(least) <= sys.float_info.max):
            raise ConfigError(f"least = {least!r}: the least score must be a finite number.")
        scanner = self._loaded[1][query.side]
        start = time.perf_counter()
        embeddings = query.embeddings
        if query.side == self.manifest.side:
            embeddings = embeddings.to_items()
        hits = scanner.top(embeddings, min(k, len(self)), selected, least)
        times = Milliseconds(
            parse=round(1000 * query.parse, 3),
            encode=round(1000 * query.encode, 3),
            search=round(1000 * (time.perf_counter() - start), 3),
        )
        # Only scores between a picture and a text, without entities, have shares.
        has_shares = query.side != self.manifest.side and self.beta is None
        right = self.model.right if has_shares else None
        return [
            Answer(
                query=name,
                unknown=unknown,
                understood=understood,
                results=self._results(hit, query.side, right) if understood else [],
                right=right if understood else None,
                exact=hit.exact,
                reranked=hit.reranked,
                ms=times,
            )
            for name, (unknown, understood), hit in zip(query.names, query.words, hits, strict=True)
        ]

    def _results(self, hits: Hits, asking: Side, right: Right | None) -> list[Result]:
        columns = ["id", "path", *(["text"] if self.manifest.side == "texts" else [])]
        rows = self.stored.items.select(columns).take(hits.rows).to_pylist()
        precision = None
        if right:
            direction: Literal["text", "image"] = "text" if asking == "texts" else "image"
            precision = self.model.precision(hits.scores, direction)
        shares = [None] * len(rows) if precision is None else precision.tolist()
        return [
            Result(**row, score=score, precision=share)
            for row, score, share in zip(rows, hits.scores.tolist(), shares, strict=True)
        ]

    @property
    def _loaded(self) -> tuple[Model, dict[Side, Scanner]]:
        """The model, and the scanner for queries of each kind."""
        from manymatch.search.index.queries import loaded

        with self._loading:
            if self._ready is None:
                self._ready = loaded(self)
            return self._ready

    @cached_property
    def _filters(self) -> Filters:
        return Filters(self.stored.items)

    @cached_property
    def _source(self) -> Source:
        return source_at(
            self.folder / self.manifest.source, self.manifest.kind, self.manifest.split
        )

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {id: row for row, id in enumerate(self.stored.items["id"].to_pylist())}

    def _row(self, id: str) -> int:
        if id not in self:
            raise DataError(f"no item '{id}' in the index. Name the id of a result")
        return self._rows[id]

    def _values(self, row: int, columns: list[str]) -> dict[str, Any]:
        cells = self.stored.items.select(columns).slice(row, 1)
        (values,) = python_cells(cells, self.folder).to_pylist()
        return values
