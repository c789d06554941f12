"""Search by an engine for vectors. A result is proven exact, or says how much better another item
may be.

For each vector of a query the engine gives the items with the largest product. An item that is in
none of these lists has no product above the last one of each list. The score of such products
bounds the scores of all items that were not seen (Fagin's threshold).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from manymatch.methods.embeddings import Embeddings
from manymatch.model.model import Model
from manymatch.search.scan.bounds import rounding
from manymatch.search.scan.exact import Best, ExactScores, Hits, single
from manymatch.search.scan.forms import Form, Question, form_of
from manymatch.search.scan.source import BLOCK, Floats, item_parts, unit
from manymatch.util.errors import ConfigError


class Engine(Protocol):
    """Finds items by their vectors, exactly."""

    def nearest(
        self, vector: NDArray[np.float32], count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The `count` items with the largest product of one of their vectors and `vector (D,)`:
        rows, and these products, the largest first."""


class QdrantEdge:
    """The embedded edition of Qdrant, in a folder.

    Args:
        folder: of the engine's files; it need not exist.
        size: D.
    """

    def __init__(self, folder: Path, size: int) -> None:
        import qdrant_edge

        self._qdrant: Any = qdrant_edge
        sets = qdrant_edge.MultiVectorConfig(qdrant_edge.MultiVectorComparator.MaxSim)
        vectors = qdrant_edge.EdgeVectorParams(
            size=size, distance=qdrant_edge.Distance.Dot, multivector_config=sets
        )
        config = qdrant_edge.EdgeConfig(vectors=vectors)
        folder.mkdir(parents=True, exist_ok=True)
        self._shard: Any = qdrant_edge.EdgeShard.create(str(folder), config)

    def add(self, start: int, vectors: NDArray[np.float32]) -> None:
        """Add the items `start`, `start + 1`, ... with `vectors (n, K, D)`."""
        points = [
            self._qdrant.Point(start + row, item.tolist(), {}) for row, item in enumerate(vectors)
        ]
        self._shard.update(self._qdrant.UpdateOperation.upsert_points(points))

    def nearest(
        self, vector: NDArray[np.float32], count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        points = self._shard.query(
            self._qdrant.QueryRequest(
                limit=count,
                query=self._qdrant.Query.Nearest([vector.tolist()]),
                params=self._qdrant.SearchParams(exact=True),
            )
        )
        rows = np.array([point.id for point in points], np.int64)
        return rows, np.array([point.score for point in points], np.float32)


class EngineScanner:
    """Finds the items of a gallery that fit a query best, among the candidates of an engine.

    Args:
        model, gallery: as for `Scanner`; the gallery is one of images.
        engine: holds the vectors that `upload` gives.
        depth: length of the engine's first lists, which are doubled up to `most` items until the
            result is proven.

    Raises:
        ConfigError: the method's score cannot be bounded by an engine's products.
        DataError: an item is not finite.
    """

    def __init__(
        self,
        model: Model,
        gallery: Embeddings,
        engine: Engine,
        depth: int = 100,
        most: int = 3200,
    ) -> None:
        self._form = _form(model, gallery)
        self._exact = ExactScores(model, gallery, "images", None, self._form)
        self._source = Floats(self._form, gallery)
        self._engine, self._depth, self._most = engine, depth, most

    @torch.inference_mode()
    def top(self, queries: Embeddings, k: int) -> list[Hits]:
        """The best k items for each query that are known, and whether this is proven.

        Raises:
            DataError: a query is not finite.
        """
        return [self._best(query, k) for query in single(queries)]

    def _best(self, query: Embeddings, k: int) -> Hits:
        question = self._form.ask(query, self._source.longest)
        best, seen, depth = Best(k, -np.inf), np.empty(0, np.int64), self._depth
        while True:
            rows, unseen = self._candidates(question, depth)
            best.add(*self._exact(query, np.setdiff1d(rows, seen)))
            seen = np.union1d(seen, rows)
            worst = float(best.scores[-1]) if len(best.scores) == k else -np.inf
            exact = unseen < worst or len(seen) == self._source.count
            if exact or depth >= self._most:
                excess = 0.0 if exact else unseen - worst
                return Hits(best.rows, best.scores, best.count, exact, excess)
            depth *= 2

    def _candidates(self, question: Question, depth: int) -> tuple[NDArray[np.int64], float]:
        """Rows of items, and an upper bound of the scores of all other items."""
        rows, last = [], []
        for vector in question.vectors:
            nearest, products = self._engine.nearest(vector.float().numpy(), depth)
            rows.append(nearest)
            last.append(float(products[-1]) + unit(vector) * self._source.longest)
        products_of_others = torch.tensor(last)[None, :, None].repeat(self._source.elements, 1, 1)
        bound = question.reduce(products_of_others, None)
        return np.concatenate(rows), float(bound) + rounding(question, self._source.elements)


def upload(engine: QdrantEdge, model: Model, gallery: Embeddings) -> None:
    """Give the engine the vectors that the model's score reads."""
    form = _form(model, gallery)
    for start in range(0, len(gallery), BLOCK):
        items = item_parts(gallery).rows(slice(start, min(start + BLOCK, len(gallery))))
        engine.add(start, form.rows(items).numpy())


def _form(model: Model, gallery: Embeddings) -> Form:
    form = form_of(model.method, "images")
    if form is None or form.offsets is not None or gallery.mask is not None:
        raise ConfigError(
            f"the score of method '{model.preset.method}' has parts that an engine's products do "
            "not bound. Search without the engine."
        )
    return form
