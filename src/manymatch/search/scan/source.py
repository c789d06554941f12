"""What a scan reads: the vectors of a gallery, and what bounds the error of their products."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from manymatch.evaluation.embed import check_finite
from manymatch.methods.embeddings import Embeddings
from manymatch.search.scan.forms import ROUNDED, Form, Question
from manymatch.system.errors import DataError

BLOCK = 8192
"""Items that are bounded at once: their products stay in the cache of a core."""

Bounds = Callable[[int], tuple[Tensor, Tensor | None]]
"""The number of a block of b items -> upper bounds `(K, C, b)` of the products with the C vectors
of all questions, and a mask `(K, b)` of the real elements (None: all). The next call may overwrite
the bounds."""


class Source(ABC):
    """The vectors of n items in blocks of `BLOCK`; `longest` bounds the norms of the vectors."""

    count: int
    elements: int
    longest: float

    @abstractmethod
    def reader(self, questions: Sequence[Question]) -> AbstractContextManager[Callable[[], Bounds]]:
        """Inside the context, every call makes the `Bounds` of one thread."""


class Floats(Source):
    """The vectors that a form reads from float32 embeddings, without codes.

    Raises:
        DataError: an embedding is not finite.
    """

    def __init__(self, form: Form, gallery: Embeddings) -> None:
        self._form, self._gallery = form, per_item(gallery)
        self.count, self.longest, self.elements = len(gallery), 0.0, 0
        self._errors: list[Tensor] = []
        """For every block `(1, K, b)`, the norms, or `(2, K, b)`, norms and offsets."""
        for number in range(blocks(self.count)):
            items = self._items(number)
            check_items(items, number * BLOCK)
            exact = double(items)
            norms = form.rows(exact).norm(dim=2).T
            self.longest = max(self.longest, float(norms.max()))
            self.elements = len(norms)
            self._errors.append(stacked([norms], offsets(form, exact)))

    @contextmanager
    def reader(self, questions: Sequence[Question]) -> Iterator[Callable[[], Bounds]]:
        counts = [len(question.vectors) for question in questions]
        vectors = torch.cat([question.vectors for question in questions]).float()
        errors = [(unit(question.vectors), 1.0) for question in questions]

        def bounds(number: int) -> tuple[Tensor, Tensor | None]:
            rows = self._form.rows(self._items(number))
            flat = vectors @ rows.flatten(0, 1).T
            planes = flat.view(len(vectors), *rows.shape[:2]).permute(2, 0, 1).contiguous()
            for own, weights in zip(planes.split(counts, 1), errors, strict=True):
                own.add_(weighted(self._errors[number], weights)[:, None])
            return planes, mask(self._errors[number], 1)

        yield lambda: bounds

    def _items(self, number: int) -> Embeddings:
        return self._gallery.rows(block(number, self.count))


def blocks(count: int) -> int:
    return math.ceil(count / BLOCK)


def block(number: int, count: int) -> slice:
    """The items of a block."""
    return slice(number * BLOCK, min((number + 1) * BLOCK, count))


def double(items: Embeddings) -> Embeddings:
    return items.map(lambda part: part.double() if part.is_floating_point() else part)


def per_item(items: Embeddings) -> Embeddings:
    """The items without the parts that no form reads."""
    unread: dict[str, Any] = dict.fromkeys(items.parts().keys() - items.scored_parts().keys())
    return replace(items, **unread)


def unit(vectors: Tensor) -> float:
    """A bound of the error of float32 products of `vectors (..., D)` with a vector of norm 1.

    The bound is twice the largest relative rounding error of D terms.
    """
    return (vectors.shape[-1] + 8) * 2.0**-23 * float(vectors.norm(dim=-1).max())


def check_items(items: Embeddings, start: int) -> None:
    """Refuse an item that is not finite, or an empty set: a `DataError` gives the item's number."""
    numbers = [f"item {number}" for number in range(start, start + len(items))]
    for part in items.scored_parts().values():
        if part.is_floating_point():
            check_finite(part, numbers)
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
    """`(K, b)`, True for real elements, from `errors (S, K, b)` that may have the offsets as row
    `number`."""
    return errors[number].isfinite() if len(errors) > number else None


def weighted(errors: Tensor, weights: Sequence[float]) -> Tensor:
    """`(K, b)`: the sum of the `errors (S, K, b)`, each times its weight."""
    total = errors[0] * weights[0]
    for error, weight in zip(errors[1:], weights[1:], strict=False):
        total.add_(error, alpha=weight)
    return total
