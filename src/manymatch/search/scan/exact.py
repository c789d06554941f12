"""Exact scores of a few items of a gallery, and the best of them.

An exact score is the method's score of embeddings in float64, rounded to float32. Unlike a score in
float32, it does not depend on the items that are scored together, so that equal items have equal
scores. Ties are in the order of the rows.
"""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manymatch.evaluation.ranking.blocks import Score, checked, runs
from manymatch.evaluation.rerank import reranked
from manymatch.methods.cora import CORA
from manymatch.methods.embeddings import Embeddings
from manymatch.search.model import Model
from manymatch.search.scan.codes import Side
from manymatch.search.scan.source import double, in_double, per_item
from manymatch.system.errors import ConfigError
from manymatch.system.parallel_map import side_by_side

_NUMBERS_AT_ONCE = 2**20
"""Numbers of float64 embeddings that are scored at once: 8 MiB, for which memory is reused."""


class ExactScores:
    """The exact scores of a gallery's items.

    Args:
        model, gallery, side, beta: as for `Scanner`.
        flat_parts: whether the score reads parts that have any number of rows for each item.

    Raises:
        ConfigError: `beta` is out of range, or the model's method gives texts no entities.
    """

    def __init__(
        self, model: Model, gallery: Embeddings, side: Side, beta: float | None, flat_parts: bool
    ) -> None:
        if beta is not None:
            _check_beta(model, beta)
        self._model, self._side = model, side
        self._gallery = gallery.scored() if flat_parts else per_item(gallery)
        score = (model.method.t2i_score if side == "images" else None) or model.method.score
        self._score: Score = score if beta is None else reranked(score, beta)

    def __call__(
        self, query: Embeddings, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows in their order, and their scores."""
        rows = np.sort(rows)
        at_once = max(1, _NUMBERS_AT_ONCE // self._gallery.vectors[0].numel())
        parts = (rows[run] for run in runs(len(rows), at_once))
        scores = side_by_side(partial(self._scores, query), parts)
        return rows, np.concatenate([np.empty(0, np.float32), *scores])

    def _scores(self, query: Embeddings, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        items = _taken(self._gallery, torch.from_numpy(rows))
        if self._model.device.type != "cpu":
            items, query = items.to(self._model.device), query.to(self._model.device)
        sides = (items, query) if self._side == "images" else (query, items)
        return checked(self._score(*sides).flatten()).float().cpu().numpy()


class Best:
    """The best k of the items that were scored, and their number (`count`)."""

    def __init__(self, k: int, least: float) -> None:
        self._k, self._least = k, np.float32(least)
        self.rows, self.scores = np.empty(0, np.int64), np.empty(0, np.float32)
        self.count = 0

    def add(self, rows: NDArray[np.int64], scores: NDArray[np.float32]) -> None:
        self.count += len(rows)
        kept = scores >= self._least
        all_rows = np.concatenate([self.rows, rows[kept]])
        all_scores = np.concatenate([self.scores, scores[kept]])
        order = np.lexsort((all_rows, -all_scores))[: self._k]
        self.rows, self.scores = all_rows[order], all_scores[order]

    def reached_by(self, bounds: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Whether items with these upper bounds may still be among the best. An item whose bound
        equals the worst score may have that score and an earlier row."""
        worst = self.scores[-1] if len(self.scores) == self._k else self._least
        return bounds >= max(worst, np.finfo(np.float32).min)


def _taken(items: Embeddings, rows: Tensor) -> Embeddings:
    """The items with these ascending row numbers, in float64."""
    if not items.index_parts():
        return items.map(lambda part: in_double(part[rows]))
    ends = [0, *((rows.diff() != 1).nonzero()[:, 0] + 1).tolist(), len(rows)]
    slices = [
        slice(int(rows[start]), int(rows[end - 1]) + 1) for start, end in itertools.pairwise(ends)
    ]
    return double(Embeddings.join([items.rows(selected) for selected in slices]))


def _check_beta(model: Model, beta: float) -> None:
    if not isinstance(model.method, CORA) or not 0 <= beta <= 1:
        raise ConfigError(
            f"re-ranking by entities with beta {beta}: expected the method 'cora', not "
            f"'{model.preset.method}', and a beta from 0 to 1."
        )
