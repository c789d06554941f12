"""What a scan reads: the vectors of a gallery, and what bounds the error of their products."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor

from manymatch.methods.embeddings import Embeddings
from manymatch.model.embed import check_finite
from manymatch.search.scan.forms import ROUNDED, Form, Question
from manymatch.util.errors import DataError

BLOCK = 8192
"""Items whose vectors and numbers lie together."""
LARGEST = 1e15
"""Numbers of embeddings are smaller: products of larger ones could leave float32."""
_VECTORS = 32768
"""Vectors of a run, if a block does not have more: their products stay in the cache of a core, and
the threads seldom meet at Python's lock."""

Bounds = Callable[[slice], tuple[list[Tensor], Tensor | None]]
"""A run of b items -> for each question upper bounds `(K, L, b)` of the products with its L
vectors, and a mask `(K, b)` of the real elements (None: all). The next call may overwrite the
bounds."""


class Source(ABC):
    """The vectors of n items, which are read in `runs`; `longest` bounds the norms of vectors."""

    count: int
    elements: int
    longest: float

    def runs(self, threads: int) -> list[slice]:
        """All items in runs of whole blocks, one or more for each thread; the last block alone if
        it is not full."""
        full = self.count // BLOCK
        rows_at_once = max(1, _VECTORS // (self.elements * BLOCK))
        parts = threads * math.ceil(full / (rows_at_once * threads)) or 1
        edges = [full * part // parts * BLOCK for part in range(parts + 1)]
        return [slice(*run) for run in pairwise(dict.fromkeys([*edges, self.count]))]

    @abstractmethod
    def reader(self, questions: Sequence[Question]) -> AbstractContextManager[Callable[[], Bounds]]:
        """Inside the context, every call makes the `Bounds` of one thread."""


class Floats(Source):
    """The vectors that a form reads from float32 embeddings, without codes.

    Raises:
        DataError: an embedding is not finite.
    """

    def __init__(self, form: Form, gallery: Embeddings) -> None:
        self._form, self._gallery = form, item_parts(gallery)
        self.count = len(gallery)
        self.elements = form.rows(self._gallery.rows(slice(0, 1))).shape[1]
        errors: list[Tensor] = []
        for run in self.runs(1):
            items = self._gallery.rows(run)
            check_items(items, run.start)
            exact = double(items)
            norms = form.rows(exact).norm(dim=2).T
            errors.append(stacked([norms], offsets(form, exact)))
        self._errors = torch.cat(errors, 2)
        """`(1, K, n)`, the norms, or `(2, K, n)`, norms and offsets."""
        self.longest = float(self._errors[0].max())

    @contextmanager
    def reader(self, questions: Sequence[Question]) -> Iterator[Callable[[], Bounds]]:
        own_columns = columns([question.vectors for question in questions])
        vectors = torch.cat([question.vectors for question in questions]).float()
        errors = [(unit(question.vectors), 1.0) for question in questions]

        def bounds(run: slice) -> tuple[list[Tensor], Tensor | None]:
            rows = self._form.rows(self._gallery.rows(run))
            flat = vectors @ rows.flatten(0, 1).T
            planes = flat.view(len(vectors), *rows.shape[:2]).permute(2, 0, 1).contiguous()
            split = [planes[:, own] for own in own_columns]
            for own, weights in zip(split, errors, strict=True):
                own.add_(weighted(self._errors[..., run], weights)[:, None])
            return split, mask(self._errors[..., run], 1)

        yield lambda: bounds


def columns(queries: Sequence[Sized]) -> list[slice]:
    """The columns of each query, in a product with the vectors of all."""
    ends = list(accumulate(map(len, queries), initial=0))
    return [slice(*edges) for edges in pairwise(ends)]


def double(items: Embeddings) -> Embeddings:
    return items.map(lambda part: part.double() if part.is_floating_point() else part)


def item_parts(items: Embeddings) -> Embeddings:
    """The items without the parts that no form reads."""
    unread: dict[str, Any] = dict.fromkeys(items.parts().keys() - items.scored_parts().keys())
    return replace(items, **unread)


def unit(vectors: Tensor) -> float:
    """A bound of the error of float32 products of `vectors (..., D)` with a vector of norm 1.

    The bound is twice the largest relative rounding error of D terms.
    """
    return (vectors.shape[-1] + 8) * 2.0**-23 * float(vectors.norm(dim=-1).max())


def check_range(embeddings: Embeddings) -> None:
    """Refuse numbers that no model gives, with which scores would leave float32: a `DataError`."""
    if not bool((embeddings.vectors.abs() <= LARGEST).all()):
        raise DataError(f"an embedding has a number that is not in -{LARGEST:g} to {LARGEST:g}")
    widths = embeddings.log_variance
    if widths is not None and not bool((widths.abs() <= math.log(LARGEST)).all()):
        raise DataError(
            f"an embedding has a variance that is not in {1 / LARGEST:g} to {LARGEST:g}"
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


def offsets(form: Form, items: Embeddings) -> Tensor | None:
    """`(K, b)` upper bounds of what the form adds to products, minus infinity for elements that are
    not real. None: nothing is added, and the sets have no mask."""
    if form.offsets is None and items.mask is None:
        return None
    exact = items.vectors.new_zeros(()) if form.offsets is None else form.offsets(items)
    bounds = exact + ROUNDED * exact.abs()
    return bounds.T if items.mask is None else bounds.where(items.mask, -torch.inf).T


def stacked(errors: Sequence[Tensor], added: Tensor | None) -> Tensor:
    """Bounds of errors, and the offsets if there are any: `(S, K, b)` float32, not rounded down."""
    return torch.stack([*errors, *([] if added is None else [added])]).float()


def mask(errors: Tensor, number: int) -> Tensor | None:
    """`(K, n)`, True for real elements, from `errors (S, K, ...)` that may have the offsets of n
    items as row `number`."""
    return errors[number].isfinite().flatten(1) if len(errors) > number else None


def weighted(errors: Tensor, weights: Sequence[float]) -> Tensor:
    """`(K, b)`: the sum of the `errors (S, K, b)`, each times its weight."""
    total = errors[0] * weights[0]
    for row in range(1, len(errors)):
        total.add_(errors[row], alpha=weights[row])
    return total
