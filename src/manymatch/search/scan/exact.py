"""Exact scores of a few items of a gallery, and the best of them.

An exact score is the method's score of embeddings in float64, rounded to float32. Unlike a score in
float32, it does not depend on the items that are scored together, so that equal items have equal
scores. Ties are in the order of the rows.

Where a score reads products alone, NumKong makes them in float64 from the float32 embeddings. Each
item is then replaced by its products with the query's L vectors, and the query by the L unit
vectors. Their products are the same.

A gallery on a GPU is scored there as a whole, and the best items come to the CPU in one copy.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manymatch.batch.parallel_map import map_parallel
from manymatch.evaluation.ensemble import reranked
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.answer import Side
from manymatch.model.embed import check_finite
from manymatch.model.model import Model
from manymatch.model.scores import Score, checked
from manymatch.search.scan import dots
from manymatch.similarities.blocks import runs
from manymatch.util.errors import ConfigError, DataError

LARGEST = 1e15
"""Numbers of embeddings are smaller: products of larger ones could leave float32."""
_NUMBERS_AT_ONCE = 2**22
"""Numbers of embeddings that are scored at once: the small operations on products cost little."""
_DOUBLES_AT_ONCE = 2**20
"""Numbers of float64 embeddings that are scored at once: 8 MiB, for which memory is reused."""
_DOUBLES_ON_GPU = 2**24
"""The same for a gallery on a GPU: 128 MiB, because many items use the hardware fully."""
_SPAN = 1.5
"""If a range of rows has at most this many times the wanted items, all items of the range are
scored, because a range needs no copy."""


Take = Callable[[NDArray[np.int64]], Embeddings]
"""Row numbers to the embeddings of these items, in this order."""


def single(queries: Embeddings) -> list[Embeddings]:
    """The queries one by one, in float64. Embeddings are numbers of float32.

    Raises:
        DataError: a query is not finite.
    """
    check_finite(queries.vectors, [f"query {number}" for number in range(len(queries))])
    check_range(queries, of_index=False)
    exact = double(queries.scored().float())
    return [exact.rows(slice(number, number + 1)) for number in range(len(exact))]


class ExactScores:
    """The exact scores of a gallery's items.

    Args:
        model, gallery, side, beta, resident, take: as for `Scanner`.

    Attributes:
        form: of the score; None: the score may read parts that have any number of rows for an item.

    Raises:
        ConfigError: `beta` is out of range, or the model's method gives texts no entities.
    """

    def __init__(
        self,
        model: Model,
        gallery: Embeddings,
        side: Side = "images",
        beta: float | None = None,
        resident: bool = False,
        take: Take | None = None,
    ) -> None:
        if beta is not None and not (
            0 <= beta <= 1 and model.method.products("images", beta) is not None
        ):
            raise ConfigError(
                f"re-ranking by entities with beta {beta}: expected the method 'cora', not "
                f"'{model.preset.method}', and a beta from 0 to 1."
            )
        self._model, self._side, self._take = model, side, take
        self.form = form = model.method.products(side, beta)
        self._gallery = gallery.scored() if form is None else item_parts(gallery)
        dotted = form is not None and form.reads_vectors_alone and beta is None and dots.available()
        self._uses_dots = dotted and gallery.vectors.dtype == torch.float32 and not resident
        score = (model.method.t2i_score if side == "images" else None) or model.method.score
        self._score: Score = score if beta is None else reranked(score, beta)
        at_once = max(1, _DOUBLES_ON_GPU // gallery.vectors[0].numel())
        # The gallery is cut once: each cut of texts with entities waits for the GPU.
        self._blocks = [
            self._gallery.rows(run) for run in runs(len(gallery) if resident else 0, at_once)
        ]

    def __call__(
        self, query: Embeddings, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows in their order, and their scores."""
        rows = np.sort(rows)
        numbers = _NUMBERS_AT_ONCE if self._uses_dots else _DOUBLES_AT_ONCE
        rows_at_once = max(1, numbers // self._gallery.vectors[0].numel())
        parts = (rows[run] for run in runs(len(rows), rows_at_once))
        scores = map_parallel(partial(self._scores, query), parts)
        return rows, np.concatenate([np.empty(0, np.float32), *scores])

    def best(
        self, query: Embeddings, k: int, least: np.float32, included: NDArray[np.bool_] | None
    ) -> "Hits":
        """The best k of the items, all of which are scored, of a resident gallery."""
        device = self._gallery.vectors.device
        query, parts = query.to(device), []
        for items in map(double, self._blocks):
            sides = (items, query) if self._side == "images" else (query, items)
            parts.append(self._score(*sides).flatten().float())
        scores, count = torch.cat(parts), len(self._gallery)
        finite = scores.isfinite()
        if included is not None:
            wanted, count = torch.tensor(included, device=device), int(included.sum())
            finite |= ~wanted
            scores = scores.where(wanted, -torch.inf)
        ordered, rows = scores.sort(descending=True, stable=True)
        numbers = [finite.all()[None], ordered[:k], rows[:k]]
        # float64 holds all of them. One copy to the CPU, because each copy waits for a GPU.
        valid, *found = torch.cat([part.double() for part in numbers]).cpu().numpy()
        if not valid:
            checked(scores if included is None else scores[wanted])
        best, places = np.split(np.array(found), 2)
        kept = best >= max(least, np.finfo(np.float32).min)
        return Hits(places[kept].astype(np.int64), best[kept].astype(np.float32), count)

    def _scores(self, query: Embeddings, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        first, end = int(rows[0]), int(rows[-1]) + 1
        if self._take is not None:
            items, rows = self._take(rows), np.arange(len(rows))
        elif end - first <= _SPAN * len(rows):
            items, rows = self._gallery.rows(slice(first, end)), rows - first
        else:
            items, rows = _taken(self._gallery, rows), np.arange(len(rows))
        check_range(items)
        items, query = _reduced(items, query) if self._uses_dots else (double(items), query)
        if self._model.device.type != "cpu":
            items, query = items.to(self._model.device), query.to(self._model.device)
        sides = (items, query) if self._side == "images" else (query, items)
        return checked(self._score(*sides).flatten().float()).cpu().numpy()[rows]


@dataclass(frozen=True)
class Hits:
    """The best items for one query, the highest score first; equal scores in the order of rows.

    Attributes:
        rows: `(k,)` int64, rows of the gallery; fewer than k if fewer items qualify.
        scores: `(k,)` float32.
        reranked: the number of items that were scored exactly.
        exact: whether no other item can be among them.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    reranked: int
    exact: bool = True


class Best:
    """The best k of the items that were scored, and their number (`count`)."""

    def __init__(self, k: int, least: np.float32) -> None:
        self.k, self._least = k, least
        self.rows, self.scores = np.empty(0, np.int64), np.empty(0, np.float32)
        self.count = 0

    def add(self, rows: NDArray[np.int64], scores: NDArray[np.float32]) -> None:
        self.count += len(rows)
        kept = scores >= self._least
        all_rows = np.concatenate([self.rows, rows[kept]])
        all_scores = np.concatenate([self.scores, scores[kept]])
        order = np.lexsort((all_rows, -all_scores))[: self.k]
        self.rows, self.scores = all_rows[order], all_scores[order]

    def reached_by(self, bounds: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Whether items with these upper bounds may still be among the best. An item whose bound
        equals the worst score may have that score and an earlier row."""
        worst = self.scores[-1] if len(self.scores) == self.k else self._least
        return bounds >= max(worst, np.finfo(np.float32).min)


def _reduced(items: Embeddings, query: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Embeddings of L numbers that have the same products, in float64."""
    n, elements, _ = items.vectors.shape
    vectors, rows = query.vectors[0].float(), items.vectors.flatten(0, 1).contiguous()
    products = dots.Products(vectors.numpy(), len(rows))(rows.numpy())
    units = torch.eye(len(vectors), dtype=products.dtype)[None]
    return replace(items, vectors=products.view(n, elements, -1)), replace(query, vectors=units)


def _taken(items: Embeddings, rows: NDArray[np.int64]) -> Embeddings:
    """The items with these ascending row numbers."""
    if not items.index_parts():
        numbers = torch.from_numpy(rows)
        return items.map(lambda part: part[numbers])
    runs_of_rows = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
    return Embeddings.join([items.rows(slice(run[0], run[-1] + 1)) for run in runs_of_rows])


def double(items: Embeddings) -> Embeddings:
    return items.map(lambda part: part.double() if part.is_floating_point() else part)


def resident(gallery: Embeddings, device: torch.device) -> Embeddings:
    """The gallery on the GPU `device` if a quarter of its free memory is enough, else as it is."""
    if device.type != "cuda":
        return gallery
    needed = sum(part.nbytes for part in gallery.scored().parts().values())
    fits = needed <= torch.cuda.mem_get_info(device)[0] // 4
    return gallery.scored().to(device) if fits else gallery


def item_parts(items: Embeddings) -> Embeddings:
    """The items without the parts that no form reads."""
    unread: dict[str, Any] = dict.fromkeys(items.parts().keys() - items.scored_parts().keys())
    return replace(items, **unread)


def check_range(embeddings: Embeddings, of_index: bool = True) -> None:
    """Refuse numbers that no model gives, with which scores would leave float32: a `DataError`."""
    where = "an item of the index" if of_index else "the query"
    again = ". Make the index again" if of_index else ""
    if not bool((embeddings.vectors.abs() <= LARGEST).all()):
        raise DataError(f"{where} has a number that is not in -{LARGEST:g} to {LARGEST:g}{again}")
    widths = embeddings.log_variance
    if widths is not None and not bool((widths.abs() <= math.log(LARGEST)).all()):
        raise DataError(
            f"{where} has a variance that is not in {1 / LARGEST:g} to {LARGEST:g}{again}"
        )


def check_items(items: Embeddings, start: int) -> None:
    """Refuse an item that is not finite, or an empty set: a `DataError` gives the item's number."""
    numbers = [f"item {number}" for number in range(start, start + len(items))]
    for part in items.scored_parts().values():
        if part.is_floating_point():
            check_finite(part, numbers)
    check_range(items)
    if items.mask is not None and not bool(items.mask.any(1).all()):
        empty = numbers[int((~items.mask.any(1)).nonzero()[0])]
        raise DataError(f"{empty} is a set without a real element: its mask is False throughout")
