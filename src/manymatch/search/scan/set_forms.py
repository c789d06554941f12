"""Upper bounds of the similarities of sets from upper bounds of the products of their elements.

Each takes products `(K, L, n)`, which it may overwrite, and a mask `(K, n)` of the real elements of
n items (None: all are real). A product of an element that is not real is minus infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor

from manymatch.similarities.matchings import largest_planes
from manymatch.similarities.set_similarity import SetSimilarity

Reduce = Callable[[Tensor, Tensor | None], Tensor]
"""Products `(K, L, n)` and a mask `(K, n)` or None -> bounds `(n,)`."""

_LARGEST_EXPONENT = 80.0
"""exp(80) is finite in float32, and so is a sum of a thousand such terms."""


def set_form(similarity: SetSimilarity, longest: float) -> tuple[float, Reduce, float]:
    """The bound of the rule by which `similarity` ranks: a factor of the products, the bound from
    the multiplied products, and the largest number on the way to it.

    Args:
        longest: a bound of the absolute value of all products.
    """
    rule = similarity.inference or "topk" if similarity.name == "max_match" else similarity.name
    if rule == "smooth_chamfer":
        alpha = similarity.alpha
        bounded = alpha * longest < _LARGEST_EXPONENT
        return alpha, partial(_smooth_chamfer, alpha, bounded), longest + 1 / alpha
    if rule == "mp":
        scale, shift = similarity.log_scale.exp().item(), similarity.shift.item()
        return scale, partial(_match_probability, shift), 1 + scale * longest + abs(shift)
    if rule in ("matching", "topk", "max"):
        most = 1 if rule == "max" else None
        largest = (1 + longest) * math.exp(min(longest, _LARGEST_EXPONENT))
        return 1.0, partial(_top_match, most), largest
    return 1.0, {"cosine": cosine, "mil": _mil, "chamfer": _chamfer}[rule], longest


def cosine(products: Tensor, mask: Tensor | None) -> Tensor:
    if products.shape[:2] == (1, 1) and mask is None:
        return products[0, 0]
    return _mean(products.mean(1), mask)


def _mil(products: Tensor, mask: Tensor | None) -> Tensor:
    return products.amax((0, 1))


def _chamfer(products: Tensor, mask: Tensor | None) -> Tensor:
    return (_mean(products.amax(1), mask) + products.amax(0).mean(0)).div_(2)


def _smooth_chamfer(alpha: float, bounded: bool, products: Tensor, mask: Tensor | None) -> Tensor:
    n_item, n_query = products.shape[:2]
    if bounded:
        sums = _margins(n_item, n_query) @ products.exp_().flatten(0, 1)
        to_query, to_item = sums.log_().split([n_item, n_query])
    else:
        to_query, to_item = products.logsumexp(1), products.logsumexp(0)
    return _mean(to_query, mask).add_(_mean(to_item, None)).div_(2 * alpha)


@cache
def _margins(rows: int, columns: int) -> Tensor:
    """`(rows + columns, rows * columns)`: the sums of a matrix along its rows and its columns, as
    one product, which reads the numbers once."""
    row, column = torch.eye(rows), torch.eye(columns)
    to_rows, to_columns = row.repeat_interleave(columns, 1), column.repeat(1, rows)
    return torch.cat([to_rows, to_columns])


def _match_probability(shift: float, products: Tensor, mask: Tensor | None) -> Tensor:
    return _mean(products.add_(shift).sigmoid_().mean(1), mask)


def _top_match(most: int | None, products: Tensor, mask: Tensor | None) -> Tensor:
    """The mean of `exp(c) - 1` over the `most` largest products; None: over as many as the smaller
    set has elements. No assignment has a larger mean."""
    n_item, n_query = products.shape[:2]
    gains = largest_planes(products.flatten(0, 1), most or min(n_item, n_query)).exp()
    if mask is None or most:
        return gains.mean(0).sub_(1)
    counts = mask.sum(0).clamp(max=n_query)
    counted = torch.arange(len(gains))[:, None] < counts
    return (gains * counted).sum(0).div_(counts).sub_(1)


def _mean(values: Tensor, mask: Tensor | None) -> Tensor:
    """The mean over the elements of `values (K, n)`."""
    if mask is None:
        return values.sum(0).div_(len(values))  # twice as fast as `mean`
    return values.masked_fill(~mask, 0.0).sum(0).div_(mask.sum(0))
