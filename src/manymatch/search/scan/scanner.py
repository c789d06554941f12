"""Scan a gallery for the best items of a query.

One pass gives an upper bound of the score of every item. The k items with the highest bounds are
scored exactly; the k-th best score excludes every item with a lower bound. The other items are
scored in the order of their bounds, until no bound reaches the k-th best score.

An exact score is `Model.score` of embeddings in float64, rounded to float32. Unlike a score in
float32, it does not depend on the items that are scored together, so that equal items have equal
scores. Ties are in the order of the rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manymatch.evaluation.embed import check_finite
from manymatch.evaluation.ranking.blocks import Score, checked, runs
from manymatch.evaluation.rerank import reranked
from manymatch.methods.cora import CORA
from manymatch.methods.embeddings import Embeddings
from manymatch.search.model import Model
from manymatch.search.scan import int8
from manymatch.search.scan.bounds import upper_bounds
from manymatch.search.scan.codes import Codes, Side
from manymatch.search.scan.forms import form_of
from manymatch.search.scan.hits import Hits
from manymatch.search.scan.source import Floats, Source, double
from manymatch.system.errors import ConfigError
from manymatch.system.parallel_map import side_by_side

_MARGIN = 24
"""Items beyond k that are scored first: a second run is often not necessary."""
_RUN = 256
"""Items in the first run after these. A call costs about as much as 256 items."""
_NUMBERS_AT_ONCE = 2**20
"""Numbers of float64 embeddings that are scored at once: 8 MiB, for which memory is reused."""


class Scanner:
    """Finds the items of a gallery that fit a query best.

    A query is an image or a text. Its embeddings take the place of the other side, so that images
    find images, too.

    Args:
        model: the trained model that made the embeddings.
        gallery: n items, in float32; the tensors may be mapped from the disk.
        codes: codes of the gallery. Without codes, or without the library for int8 products, all
            embeddings are read. The result is the same.
        side: whether the gallery's items are images or texts.
        beta: weight of the whole text where CORA ranks by the text's entities, too
            (`evaluation.rerank`); None: no re-ranking.

    Raises:
        DataError: an item is not finite, or the codes do not belong to the gallery.
        ConfigError: `beta` is out of range, or the model's method gives texts no entities.
    """

    def __init__(
        self,
        model: Model,
        gallery: Embeddings,
        codes: Codes | None = None,
        side: Side = "images",
        beta: float | None = None,
    ) -> None:
        if beta is not None:
            _check_beta(model, beta)
        self._form = form_of(model.method, side, beta)
        self._model, self._side = model, side
        self._gallery = gallery.scored() if self._form is None else _without_flat_parts(gallery)
        score = (model.method.t2i_score if side == "images" else None) or model.method.score
        self._score: Score = score if beta is None else reranked(score, beta)
        self._source: Source | None = None
        if codes is not None:
            codes.check(model, gallery, side)
        if codes is not None and int8.available():
            self._source = codes
        elif self._form is not None:
            self._source = Floats(self._form, self._gallery)

    @torch.inference_mode()
    def top(
        self,
        queries: Embeddings,
        k: int,
        included: NDArray[np.bool_] | None = None,
        least: float | None = None,
    ) -> list[Hits]:
        """The best k items for each query: those of `Model.score` over the whole gallery.

        Args:
            included: `(n,)` the items that may be in the result; None: all.
            least: items with a lower score are left out.

        Raises:
            DataError: a query is not finite.
            ConfigError: k is less than 1.
        """
        if k < 1:
            raise ConfigError(f"{k} results: expected at least 1.")
        check_finite(queries.vectors, [f"query {number}" for number in range(len(queries))])
        exact = double(queries.scored())
        single = [exact.rows(slice(number, number + 1)) for number in range(len(exact))]
        hits = []
        for query, bounds in zip(single, self._bounds(single), strict=True):
            if included is not None:
                bounds[torch.from_numpy(~included)] = -torch.inf
            hits.append(self._best(query, bounds, k, -np.inf if least is None else least))
        return hits

    def _bounds(self, queries: Sequence[Embeddings]) -> Iterator[Tensor]:
        """For every query an upper bound of every item's score, `(n,)`."""
        if self._form is None or self._source is None:
            return (torch.full((len(self._gallery),), torch.inf) for _ in queries)
        longest = self._source.longest
        return upper_bounds(self._source, [self._form.ask(query, longest) for query in queries])

    def _best(self, query: Embeddings, bounds: Tensor, k: int, least: float) -> Hits:
        best = _Best(k, least)
        count = len(bounds) if self._source is None else min(k + _MARGIN, len(bounds))
        first = bounds.topk(count).indices
        best.add(*self._exact(query, first[best.reached_by(bounds[first])]))
        bounds[first] = -torch.inf
        others = best.reached_by(bounds).nonzero()[:, 0]
        others = others[bounds[others].argsort(descending=True, stable=True)]
        start, size = 0, _RUN
        while start < len(others):
            run = others[start : start + size]
            run = run[best.reached_by(bounds[run])]
            if not len(run):
                break
            best.add(*self._exact(query, run))
            start, size = start + size, 2 * size
        return Hits(best.rows, best.scores, best.count, exact=True)

    def _exact(self, query: Embeddings, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The rows in their order, and their scores."""
        rows = rows.sort().values
        at_once = max(1, _NUMBERS_AT_ONCE // self._gallery.vectors[0].numel())
        if len(rows) <= at_once:
            return rows, self._scores(query, rows)
        parts = (rows[run] for run in runs(len(rows), at_once))
        return rows, torch.cat(side_by_side(partial(self._scores, query), parts))

    def _scores(self, query: Embeddings, rows: Tensor) -> Tensor:
        if not len(rows):
            return torch.empty(0)
        items = double(_taken(self._gallery, rows)).to(self._model.device)
        asked = query.to(self._model.device)
        sides = (items, asked) if self._side == "images" else (asked, items)
        return checked(self._score(*sides).flatten()).float().cpu()


def _without_flat_parts(items: Embeddings) -> Embeddings:
    """The items without parts that only scores without a form may read."""
    unread: dict[str, Any] = dict.fromkeys(items.parts().keys() - items.scored_parts().keys())
    return replace(items, **unread)


class _Best:
    """The best k of the items that were scored, and their number (`count`)."""

    def __init__(self, k: int, least: float) -> None:
        self._k, self._least = k, np.float32(least)
        self.rows, self.scores = np.empty(0, np.int64), np.empty(0, np.float32)
        self.count = 0

    def add(self, rows: Tensor, scores: Tensor) -> None:
        self.count += len(rows)
        kept = scores.numpy() >= self._least
        all_rows = np.concatenate([self.rows, rows.numpy()[kept]])
        all_scores = np.concatenate([self.scores, scores.numpy()[kept]])
        order = np.lexsort((all_rows, -all_scores))[: self._k]
        self.rows, self.scores = all_rows[order], all_scores[order]

    def reached_by(self, bounds: Tensor) -> Tensor:
        """Whether items with these upper bounds may still be among the best. An item whose bound
        equals the worst score may have that score and an earlier row."""
        worst = self.scores[-1] if len(self.scores) == self._k else self._least
        return bounds >= max(float(worst), torch.finfo(torch.float32).min)


def _taken(items: Embeddings, rows: Tensor) -> Embeddings:
    """The items with these ascending row numbers."""
    if not items.index_parts():
        return items.map(lambda part: part[rows])
    ends = [0, *((rows.diff() != 1).nonzero()[:, 0] + 1).tolist(), len(rows)]
    slices = [
        slice(int(rows[start]), int(rows[end - 1]) + 1) for start, end in itertools.pairwise(ends)
    ]
    return Embeddings.join([items.rows(selected) for selected in slices])


def _check_beta(model: Model, beta: float) -> None:
    if not isinstance(model.method, CORA) or not 0 <= beta <= 1:
        raise ConfigError(
            f"re-ranking by entities with beta {beta}: expected the method 'cora', not "
            f"'{model.preset.method}', and a beta from 0 to 1."
        )
