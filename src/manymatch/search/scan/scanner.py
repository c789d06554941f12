"""Scan a gallery for the best items of a query."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manymatch.evaluation.ranking.blocks import checked
from manymatch.methods.embeddings import Embeddings
from manymatch.search.model import Model
from manymatch.search.scan.codes import Codes, Side
from manymatch.search.scan.hits import Hits


class Scanner:
    """Finds the items of a gallery that fit a query best.

    A query is an image or a text. Its embeddings take the place of the other side, so that images
    find images, too.

    Args:
        model: the trained model that made the embeddings.
        gallery: n items, in float32; the tensors may be mapped from the disk.
        codes: short codes of the gallery; None: all embeddings are read. The result is the same.
        side: whether the gallery's items are images or texts.
    """

    def __init__(
        self,
        model: Model,
        gallery: Embeddings,
        codes: Codes | None = None,
        side: Side = "images",
    ) -> None:
        self._model, self._gallery, self._side = model, gallery, side

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
            DataError: an embedding is not finite.
        """
        return [_best(scores, k, included, least) for scores in self._scores(queries).T]

    def _scores(self, queries: Embeddings) -> Tensor:
        """`(n, q)`."""
        if self._side == "images":
            return checked(self._model.score(self._gallery, queries, "text"))
        return checked(self._model.score(queries, self._gallery, "image")).T


def _best(scores: Tensor, k: int, included: NDArray[np.bool_] | None, least: float | None) -> Hits:
    kept = torch.ones_like(scores, dtype=torch.bool)
    if included is not None:
        kept &= torch.from_numpy(included)
    if least is not None:
        kept &= scores >= least
    rows = kept.nonzero()[:, 0]
    best = rows[scores[rows].argsort(descending=True, stable=True)[:k]]
    return Hits(best.numpy(), scores[best].numpy(), len(scores), exact=True)
