"""Scores as functions of products of vectors, and upper bounds of scores.

Every form takes upper bounds of the products of a query's vectors with an item's vectors. Its
result never falls when a product grows, and is therefore an upper bound of the item's score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from manymatch.losses.probabilistic import log_mean_probability
from manymatch.methods.base import Method
from manymatch.methods.cora import CORA
from manymatch.methods.embeddings import Embeddings
from manymatch.methods.msrm import MSRM
from manymatch.methods.pcme import PCME
from manymatch.methods.set_method import SetMethod
from manymatch.methods.swamp import SwAMP
from manymatch.methods.swamp_video import SwAMPVideo
from manymatch.methods.vse_infinity import VSEInfinity
from manymatch.methods.vsepp import VSEPP
from manymatch.networks.pooling.gaussian import samples
from manymatch.search.scan.set_forms import Reduce, cosine, set_form
from manymatch.similarities.set_similarity import SetSimilarity
from manymatch.util.errors import DataError

ROUNDED = 2.0**-20
"""More than the relative rounding error of a few operations in float32."""


@dataclass(frozen=True)
class Question:
    """A query as a form reads it.

    Attributes:
        vectors: `(L, D)` float64.
        reduce: upper bounds of the products, `(K, L, n)`, to bounds of the scores, `(n,)`.
        magnitude: a bound of the absolute value of all numbers on the way from products to scores.
    """

    vectors: Tensor
    reduce: Reduce
    magnitude: float


@dataclass(frozen=True)
class Form:
    """How the score of a method reads the items of a gallery and a query.

    Attributes:
        rows: items to their vectors, `(n, K, D)`, in the type of the embeddings.
        ask: a query, which is one item in float64, and the largest norm of a gallery's vector to
            the query's `Question`.
        offsets: items to `(n, K)`, what is added to the products of a vector; None: nothing.
    """

    rows: Callable[[Embeddings], Tensor]
    ask: Callable[[Embeddings, float], Question]
    offsets: Callable[[Embeddings], Tensor] | None = None

    @property
    def reads_vectors_alone(self) -> bool:
        """Whether the score reads nothing of an item but products of the embeddings' vectors."""
        return self.rows is _vectors


def form_of(method: Method, side: str, beta: float | None = None) -> Form | None:
    """The form of the score by which `method` ranks a gallery of images or texts (`side`).

    None: no form of the method is known, so that all items must be scored.

    Args:
        beta: weight of the whole caption in CORA's re-ranking score; None: no re-ranking.
    """
    if isinstance(method, SetMethod):
        return Form(_vectors, partial(_ask_set, method.similarity))
    if isinstance(method, MSRM) and method.settings.inference == "intact":
        return Form(_squares, _ask_gaussian)
    if isinstance(method, MSRM) and method.settings.inference == "hypergraph":
        return Form(_candidates, _ask_cosine)
    if isinstance(method, PCME) and method.settings.inference == "samples":
        item, query = method.noise.cpu() if side == "images" else method.noise.cpu().flip(0)
        drawn = partial(_samples, item)
        return Form(drawn, partial(_ask_samples, method, query), partial(_half_squares, drawn))
    if isinstance(method, CORA) and beta is not None:
        return Form(_vectors, partial(_ask_entities, beta)) if side == "images" else None
    if isinstance(method, VSEPP | VSEInfinity | SwAMP | SwAMPVideo | CORA | MSRM | PCME):
        return Form(_vectors, _ask_cosine)
    return None


def _vectors(items: Embeddings) -> Tensor:
    return items.vectors


def _candidates(items: Embeddings) -> Tensor:
    return items.part("candidate")[:, None]


def _largest_product(vectors: Tensor, longest: float) -> float:
    """A bound of the products with vectors up to `longest`, and of upper bounds of products."""
    return 2 * longest * float(vectors.norm(dim=1).max())


def _ask_cosine(query: Embeddings, longest: float) -> Question:
    vectors = query.vectors[0]
    return Question(vectors, cosine, _largest_product(vectors, longest))


def _ask_set(similarity: SetSimilarity, query: Embeddings, longest: float) -> Question:
    vectors = query.vectors[0] if query.mask is None else query.vectors[0][query.mask[0]]
    if not len(vectors):
        raise DataError("the query is a set without a real element: its mask is False throughout")
    factor, reduce, magnitude = set_form(similarity, _largest_product(vectors, longest))
    return Question(factor * vectors, reduce, magnitude)


def _ask_entities(beta: float, query: Embeddings, longest: float) -> Question:
    """The score of `evaluation.rerank`: the caption's, and its least likely entity's."""
    if query.entities is None or not len(query.entities):
        raise DataError("the query has no entities to re-rank by. Search by the text of a caption.")

    def reduce(products: Tensor, mask: Tensor | None) -> Tensor:
        return beta * products[0, 0] + (1 - beta) * products[0, 1:].amin(0)

    vectors = torch.cat([query.vectors[0], query.entities])
    return Question(vectors, reduce, _largest_product(vectors, longest))


def _squares(items: Embeddings) -> Tensor:
    """`[b c^2, c]` of points c: a Mahalanobis distance is linear in these numbers."""
    points = items.vectors
    return torch.cat([_balance(points.shape[2]) * points.square(), points], 2)


def _balance(size: int) -> float:
    """A factor that makes the squares of a unit vector about as large as the vector's numbers.

    A power of two multiplies without rounding.
    """
    return 2.0 ** round((size - 1).bit_length() / 2)


def _ask_gaussian(query: Embeddings, longest: float) -> Question:
    """`-d2 = [b c^2, c] . [-1/(b var), 2 mu/var] - sum mu^2/var`."""
    mean, precision = query.vectors[0], (-query.part("log_variance")).exp()
    constant = float((mean.square() * precision).sum())
    vectors = torch.cat([-precision / _balance(mean.shape[1]), 2 * mean * precision], 1)

    def reduce(products: Tensor, mask: Tensor | None) -> Tensor:
        return (products[0, 0] - constant).clamp_(max=0)

    return Question(vectors, reduce, constant + _largest_product(vectors, longest))


def _samples(noise: Tensor, items: Embeddings) -> Tensor:
    """`(n, J, D)` in the type of the embeddings. A mean and its noise may cancel each other, which
    is why the sum is made in float64."""
    log_variance = items.part("log_variance").double()
    exact = samples(items.vectors[:, 0].double(), log_variance, noise.double())
    return exact.to(items.vectors.dtype)


def _half_squares(drawn: Callable[[Embeddings], Tensor], items: Embeddings) -> Tensor:
    return drawn(items).double().square().sum(2) / -2


def _ask_samples(method: PCME, noise: Tensor, query: Embeddings, longest: float) -> Question:
    """`x . y - |x|^2 / 2 - |y|^2 / 2 = -|x - y|^2 / 2`, where the offset has the item's part."""
    vectors = _samples(noise, query)[0]
    half_squares = ((1 - ROUNDED) * vectors.square().sum(1, keepdim=True) / 2).float()
    scale, shift = method.scale().item(), method.shift.item()

    def reduce(products: Tensor, mask: Tensor | None) -> Tensor:
        distances = products.sub_(half_squares).mul_(-2).clamp_(min=0).sqrt_()
        return log_mean_probability((shift - scale * distances).flatten(0, 1).T)

    farthest = longest + float(vectors.norm(dim=1).max())
    return Question(vectors, reduce, 1 + abs(shift) + 2 * scale * farthest)
