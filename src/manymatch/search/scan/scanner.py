"""The best items of a gallery for a query: brute force, or a scan of codes. Both are exact. Brute
force is on the GPU if the gallery is there.

Brute force computes the exact scores of all items. In a scan, one pass over the codes gives an
upper bound of the score of every item. The k items with the highest bounds are scored exactly; the
k-th best score excludes every item with a lower bound. The other items are scored in the order of
their bounds, until no bound reaches the k-th best score.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manymatch.methods.shared.embeddings import Embeddings
from manymatch.methods.shared.products import ProductQuery
from manymatch.model.answer import Side
from manymatch.model.model import Model
from manymatch.model.scores import check_elements, check_origin
from manymatch.search.scan import dots
from manymatch.search.scan.codes import BLOCK, Codes
from manymatch.search.scan.exact import Best, ExactScores, Hits, Take, check_items, single
from manymatch.similarities.blocks import runs
from manymatch.util.errors import ConfigError, DataError

_COLUMNS = 32
"""Vectors of queries for which one pass computes products, if a query does not have more."""
_MARGIN = 64
"""Items beyond k that are scored first: a second run is often not necessary."""
_RUN = 256
"""Items in the first run after these. A call costs about as much as 256 items."""
_MANY = 0.1
"""The share of items above which all are scored at once, in the order of their rows."""


Find = Callable[[Tensor, int, NDArray[np.bool_] | None], tuple[NDArray[np.int64], bool]]
"""The vectors of a query, k and the items that may be in the result -> rows of candidates, and
whether these are all such items."""


class Scanner:
    """Finds the items of a gallery that fit a query best.

    A query is an image or a text. Its embeddings take the place of the other side, so that images
    find images, too.

    Args:
        model: the trained model that made the embeddings.
        gallery: n items, in float32; the tensors may be mapped from the disk.
        codes: codes of the gallery, for a scan. Without codes, or without the library for int8
            products, the search is by brute force, with the same result.
        side: whether the gallery's items are images or texts.
        beta: weight of the whole text where CORA ranks by the text's entities, too
            (`evaluation.ensemble`); None: no re-ranking.
        resident: whether all items are scored where the gallery is; None: only on a GPU.
        take: gives the items of a gallery that is not in memory, of which `gallery` then has the
            first; None: the gallery is in memory.
        count: the number of items of such a gallery.
        find: gives candidates, which alone are scored, and whether no other item can be in the
            result; None: the result is exact.

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
        resident: bool | None = None,
        take: Take | None = None,
        count: int | None = None,
        find: Find | None = None,
    ) -> None:
        check_origin(gallery, model.identity, side)
        self._identity = model.identity
        self._resident = gallery.vectors.device.type != "cpu" if resident is None else resident
        self._exact = ExactScores(model, gallery, side, beta, self._resident, take)
        self._form, self._find = self._exact.form, find
        self._count, self._shape = count or len(gallery), gallery.vectors.shape[1:]
        if codes is not None:
            codes.check(model, gallery, self._count, side)
        check_elements(model.method, gallery)
        scans = self._form is not None and not self._resident and dots.available()
        self._codes = codes if scans else None
        if self._codes is None and take is None:
            for items in runs(len(gallery), BLOCK):
                check_items(gallery.rows(items), items.start)

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
            DataError: a query or an item is not finite.
            ConfigError: k is less than 1.
        """
        if k < 1:
            raise ConfigError(f"{k} results: expected at least 1.")
        check_origin(queries, self._identity)
        if queries.vectors.shape[2] != self._shape[1]:
            raise DataError(
                f"queries of {queries.vectors.shape[2]} numbers for items of {self._shape[1]}: "
                "these are embeddings of different models"
            )
        largest = float(np.finfo(np.float32).max)
        lowest = np.float32(-np.inf if least is None else max(-largest, min(least, largest)))
        hits, exact = [], single(queries)
        longest = 0.0 if self._codes is None else self._codes.longest
        # A query that has no score is refused here.
        asked = [self._form.ask(query, longest) for query in exact] if self._form else []
        if self._resident:
            return [self._exact.best(query, k, lowest, included) for query in exact]
        if self._find is not None:
            for query, own in zip(exact, asked, strict=True):
                (rows, complete), best = self._find(own.vectors, k, included), Best(k, lowest)
                best.add(*self._exact(query, rows))
                hits.append(Hits(best.rows, best.scores, best.count, complete))
            return hits
        for query, bounds in zip(exact, self._bounds(asked, len(exact)), strict=True):
            if included is not None:
                bounds[~included] = -np.inf
            hits.append(self._best(query, bounds, Best(k, lowest)))
        return hits

    def _bounds(self, asked: Sequence[ProductQuery], queries: int) -> Iterator[NDArray[np.float32]]:
        """For every query upper bounds `(n,)` of the scores; infinity where nothing is known."""
        if self._codes is None:
            yield from (np.full(self._count, np.inf, np.float32) for _ in range(queries))
            return
        for together in _passes(asked):
            yield from self._codes.upper_bounds(together)

    def _best(self, query: Embeddings, bounds: NDArray[np.float32], best: Best) -> Hits:
        if np.isnan(bounds).any():
            raise DataError("a bound of a score is not a number. Make the index again")
        count = len(bounds) if self._codes is None else min(best.k + _MARGIN, len(bounds))
        lowest = np.partition(bounds, -count)[-count]
        above = np.flatnonzero(bounds > lowest)
        equal = np.flatnonzero(bounds == lowest)[: count - len(above)]
        first = np.concatenate([above, equal])
        self._score(best, query, first[best.reached_by(bounds[first])], bounds)
        bounds[first] = -np.inf
        others = np.flatnonzero(best.reached_by(bounds))
        start, size = 0, _RUN
        if len(others) > _MANY * len(bounds):  # the bounds do not tell the items apart
            size = len(others)
        else:
            others = others[np.argsort(-bounds[others], kind="stable")]
        while start < len(others):
            run = others[start : start + size]
            run = run[best.reached_by(bounds[run])]
            if not len(run):
                break
            self._score(best, query, run, bounds)
            start, size = start + size, 2 * size
        return Hits(best.rows, best.scores, best.count)

    def _score(
        self, best: Best, query: Embeddings, rows: NDArray[np.int64], bounds: NDArray[np.float32]
    ) -> None:
        """Add the exact scores of `rows`. A score above its bound shows codes of other vectors."""
        rows, scores = self._exact(query, rows)
        if not bool((scores <= bounds[rows]).all()):
            raise DataError(
                "the codes of the index are not those of its embeddings: a score is above its "
                "bound. Make the index again"
            )
        best.add(rows, scores)


def _passes(queries: Sequence[ProductQuery]) -> Iterator[list[ProductQuery]]:
    """Runs of queries that share a pass over the codes."""
    together: list[ProductQuery] = []
    for query in queries:
        if together and sum(len(one.vectors) for one in [*together, query]) > _COLUMNS:
            yield together
            together = []
        together.append(query)
    if together:
        yield together
