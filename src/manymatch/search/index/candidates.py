"""A search of candidates that the engine of a table finds: not proven exact.

The engine compares one vector of each item with one vector of the query: the means of the vectors
whose products the method's score reads. Their product is the mean of all products. The exact
scores of the method then rank the candidates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from manymatch.methods.shared.embeddings import Embeddings
from manymatch.methods.shared.products import ProductForm
from manymatch.model.answer import Side
from manymatch.model.model import Model
from manymatch.model.scores import check_elements, check_origin
from manymatch.search.scan.exact import Best, ExactScores, Hits, double, single
from manymatch.search.scan.scanner import check_size
from manymatch.util.errors import ConfigError

if TYPE_CHECKING:
    from manymatch.search.index.table import Table

_CANDIDATES = 512
"""The fewest candidates of a query, if the table has so many items."""
_TIMES = 8
"""Candidates for each result that is asked for."""
_ALL = 8_192
"""Up to so many items that a filter selects, all are scored."""


def form_of(model: Model, side: Side) -> ProductForm:
    """The form by which candidates are found.

    Raises:
        ConfigError: the method's score reads more than products.
    """
    if (form := model.method.products(side)) is None:
        raise ConfigError(
            f"--engine lance-ivf: the scores of method '{model.preset.method}' have no candidates. "
            "Use --engine lance."
        )
    return form


def mean_vectors(form: ProductForm, items: Embeddings) -> NDArray[np.float32]:
    """`(n, D + 1)`: the means of the vectors of each item, and of what is added to products."""
    exact = double(items)
    vectors, mask = form.rows(exact), exact.mask
    added = vectors.new_zeros(vectors.shape[:2]) if form.offsets is None else form.offsets(exact)
    both = torch.cat([vectors, added[..., None].expand(*vectors.shape[:2], 1)], 2)
    if mask is None:
        return both.mean(1).float().numpy()
    return ((both * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)).float().numpy()


class CandidateScanner:
    """Searches a table as `Scanner` does, among the candidates of the engine.

    Args:
        first: the first item of the table.
        model, side, beta: as for `Scanner`.

    Raises:
        DataError, ConfigError: as for `Scanner`.
    """

    def __init__(
        self, model: Model, table: Table, first: Embeddings, side: Side, beta: float | None
    ) -> None:
        self._table, self._identity, self._size = table, model.identity, first.vectors.shape[2]
        self._form = model.method.products(side, beta) or form_of(model, side)
        self._exact = ExactScores(model, first, side, beta, self._form, take=table.taken)
        check_elements(model.method, first)

    @torch.inference_mode()
    def top(
        self,
        queries: Embeddings,
        k: int,
        included: NDArray[np.bool_] | None = None,
        least: float | None = None,
    ) -> list[Hits]:
        """The best k of the candidates of each query; arguments and errors as for `Scanner.top`."""
        if k < 1:
            raise ConfigError(f"{k} results: expected at least 1.")
        check_origin(queries, self._identity)
        check_size(queries, self._size)
        hits = []
        for query in single(queries):
            best = Best(k, np.float32(-np.inf if least is None else least))
            rows, complete = self._candidates(query, k, included)
            if len(rows):
                best.add(*self._exact(query, rows))
            hits.append(Hits(best.rows, best.scores, best.count, complete))
        return hits

    def _candidates(
        self, query: Embeddings, k: int, included: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.int64], bool]:
        """Candidates, and whether these are all items that may be in the result."""
        count = len(self._table)
        if included is not None and (selected := int(included.sum())) <= _ALL:
            return np.flatnonzero(included), True
        wanted = max(_CANDIDATES, _TIMES * k)
        if included is not None:  # so that enough of them are included
            wanted = wanted * count // selected
        if wanted >= count:
            rows = np.arange(count)
            return (rows if included is None else rows[included]), True
        vectors = self._form.ask(query, 1.0).vectors
        vector = torch.cat([vectors.mean(0), vectors.new_ones(1)]).float().numpy()
        rows = self._table.candidates(vector, wanted)
        return (rows if included is None else rows[included[rows]]), False
