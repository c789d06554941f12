"""Scores as functions of products of vectors, and upper bounds of scores.

A `ProductForm` says how the score of a method reads an item and a query. Its result never falls
when a product grows. From upper bounds of the products, the form makes an upper bound of the score,
so that a search can leave out items without their exact scores.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor

from manymatch.methods.shared.embeddings import Embeddings
from manymatch.similarities.matchings import largest_planes
from manymatch.similarities.set_similarity import SetSimilarity
from manymatch.util.errors import DataError

ROUNDED = 2.0**-20
"""An upper bound of the relative rounding error of a few operations in float32."""
_LARGEST_EXPONENT = 80.0
"""exp(80) is finite in float32, and so is a sum of a thousand such terms."""

Reduce = Callable[[Tensor, Tensor | None], Tensor]
"""Upper bounds of products `(K, L, n)`, which may be overwritten, and a mask `(K, n)` of the real
elements of n items (None: all are real) -> upper bounds of scores `(n,)`. A product of an element
that is not real is minus infinity."""


@dataclass(frozen=True)
class ProductQuery:
    """A query as a `ProductForm` reads it.

    Attributes:
        vectors: `(L, D)` float64.
        reduce: a function that converts bounds of the products into bounds of the scores.
        magnitude: a bound of the absolute values of all intermediate numbers of the score.
    """

    vectors: Tensor
    reduce: Reduce
    magnitude: float


def item_vectors(items: Embeddings) -> Tensor:
    """`(n, K, D)`: the vectors of the items themselves."""
    return items.vectors


@dataclass(frozen=True)
class ProductForm:
    """How the score of a method reads the items of a gallery and a query.

    Attributes:
        ask: a function `(query, longest) -> ProductQuery`. The query is one item in float64, and
            `longest` is the largest norm of the gallery's vectors.
        rows: a function that returns the vectors `(n, K, D)` of the products for items, in the type
            of the embeddings.
        offsets: a function that returns `(n, K)` for items. The numbers are added to the products
            of a vector. None: nothing is added.
    """

    ask: Callable[[Embeddings, float], ProductQuery]
    rows: Callable[[Embeddings], Tensor] = item_vectors
    offsets: Callable[[Embeddings], Tensor] | None = None

    @property
    def reads_vectors_alone(self) -> bool:
        """Whether the score reads only products of the embeddings' vectors of an item."""
        return self.rows is item_vectors and self.offsets is None


def largest_product(vectors: Tensor, longest: float) -> float:
    """A bound of the products with vectors up to `longest`, and of upper bounds of products."""
    return 2 * longest * float(vectors.norm(dim=1).max())


def cosine_query(query: Embeddings, longest: float) -> ProductQuery:
    """The query of a score that is the mean of all products."""
    vectors = query.vectors[0]
    return ProductQuery(vectors, _cosine, largest_product(vectors, longest))


COSINE = ProductForm(cosine_query)
"""The form of the cosine of `vectors`."""


def set_form(similarity: SetSimilarity) -> ProductForm:
    """The form of a similarity of sets."""
    return ProductForm(partial(_set_query, similarity))


def _set_query(similarity: SetSimilarity, query: Embeddings, longest: float) -> ProductQuery:
    vectors = query.vectors[0] if query.mask is None else query.vectors[0][query.mask[0]]
    if not len(vectors):
        raise DataError("the query is a set without a real element: its mask is False throughout")
    factor, reduce, magnitude = _rule(similarity, largest_product(vectors, longest))
    return ProductQuery(factor * vectors, reduce, magnitude)


def _rule(similarity: SetSimilarity, longest: float) -> tuple[float, Reduce, float]:
    """The bound of the rule by which `similarity` ranks: a factor of the products, the bound from
    the multiplied products, and the largest number on the way to the bound.

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
    return 1.0, {"cosine": _cosine, "mil": _mil, "chamfer": _chamfer}[rule], longest


def _cosine(products: Tensor, mask: Tensor | None) -> Tensor:
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
    """`(rows + columns, rows * columns)`: a matrix that sums along rows and columns. One product
    with this matrix gives all sums and reads the numbers once."""
    row, column = torch.eye(rows), torch.eye(columns)
    to_rows, to_columns = row.repeat_interleave(columns, 1), column.repeat(1, rows)
    return torch.cat([to_rows, to_columns])


def _match_probability(shift: float, products: Tensor, mask: Tensor | None) -> Tensor:
    return _mean(products.add_(shift).sigmoid_().mean(1), mask)


def _top_match(most: int | None, products: Tensor, mask: Tensor | None) -> Tensor:
    """The mean of `exp(c) - 1` over the `most` largest products. With None, `most` is the
    number of elements of the smaller set. No assignment has a larger mean."""
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
