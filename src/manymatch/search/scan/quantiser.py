"""int8 codes of vectors, and the numbers that bound the errors of their products.

The code of x is x' = scale times whole numbers from -127 to 127, and a product has the bound
`|x y - x' y'| <= |x'| |y - y'| + |x - x'| |y|`. Vectors that crowd around their mean are coded as
differences from the mean, whose products are known exactly: both norms of x are then small. Long
vectors that nearly lie in a space of fewer dimensions are projected to it. Their parts outside add
at most the product of both norms.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_LARGEST = 127
_DIMENSIONS = 256
"""Dimensions of the space to which vectors of at least twice as many numbers are projected."""
_LITTLE = 0.01
"""The part of the sum of squares that may lie outside the space, or in the mean of vectors that are
coded themselves."""
_UP = 1 + 2.0**-20
"""More than the rounding of a few operations in float32."""


@dataclass(frozen=True)
class Query:
    """The codes `(L, D)` of a query's vectors, which share one `scale`.

    `weights` belong to the numbers that `Quantiser.items` gives: the sum of the products of weights
    and numbers bounds the error of a product. The last weight, 1, is for what is added to products.
    `shifts (K, L, 1)` are upper bounds of the products with the means; None: there are no means.
    """

    codes: NDArray[np.int8]
    scale: float
    weights: tuple[float, ...]
    shifts: Tensor | None


class Quantiser:
    """Makes the codes of vectors.

    Args:
        basis: `(D, P)` float64 with orthonormal columns; None: no projection.
        means: `(K, 1, D)` float64, of the k-th vectors of all items; None: zeros.
    """

    def __init__(self, basis: Tensor | None = None, means: Tensor | None = None) -> None:
        self.basis, self.means = basis, means

    @staticmethod
    def fit(vectors: Tensor) -> "Quantiser":
        """The quantiser for items such as `vectors (K, n, D)` float64."""
        means = vectors.mean(1, keepdim=True)
        crowded = means.square().sum() > _LITTLE * vectors.square().sum() / vectors.shape[1]
        differences = (vectors - means if crowded else vectors).flatten(0, 1)
        return Quantiser(_basis(differences), means if crowded else None)

    def items(self, vectors: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The codes `(K, n, P)` int8, scales `(K, n)` and bounds, `(K, n)` each, of float64
        `vectors (K, n, D)`."""
        inside, outside = self._parts(vectors if self.means is None else vectors - self.means)
        scales = _scales(inside.abs().amax(-1))
        codes = _codes(inside, scales)
        coded = codes * scales[..., None].double()
        errors = [coded.norm(dim=-1), (inside - coded).norm(dim=-1)]
        return codes.to(torch.int8), scales, [*errors, *(part.norm(dim=-1) for part in outside)]

    def query(self, vectors: Tensor) -> Query:
        """The codes of a query's `vectors (L, D)` float64."""
        inside, outside = self._parts(vectors)
        scale = _scales(inside.abs().amax())
        codes = _codes(inside, scale)
        coded = codes * scale.double()
        # The last term covers that scaled products are rounded.
        kept = (inside - coded).norm(dim=1).max() + 2.0**-21 * coded.norm(dim=1).max()
        norms = [kept, *(part.norm(dim=1).max() for part in (inside, *outside))]
        weights = tuple(float(norm) * _UP for norm in norms)
        shifts = None
        if self.means is not None:
            means = self.means[:, 0]
            rounding = 2.0**-21 * means.norm(dim=1)[:, None] * vectors.norm(dim=1)
            shifts = (means @ vectors.T + rounding).float()[..., None]
        return Query(codes.to(torch.int8).numpy(), float(scale), (*weights, 1.0), shifts)

    def _parts(self, vectors: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The coordinates inside the space, and what is outside, if there is a space."""
        if self.basis is None:
            return vectors, []
        inside = vectors @ self.basis
        return inside, [vectors - inside @ self.basis.T]


def _basis(vectors: Tensor) -> Tensor | None:
    """The basis `(D, P)` of the space near which `vectors (n, D)` lie; None: they lie near none."""
    if min(vectors.shape) < 2 * _DIMENSIONS:
        return None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        basis = torch.svd_lowrank(vectors, _DIMENSIONS)[2]
    inside = (vectors @ basis).square().sum()
    return basis if inside >= (1 - _LITTLE) * vectors.square().sum() else None


def _scales(largest: Tensor) -> Tensor:
    """float32 steps, 1 for vectors of zeros."""
    scales = (largest / _LARGEST).float()
    return scales.where(scales > 0, 1.0)


def _codes(vectors: Tensor, scales: Tensor) -> Tensor:
    steps = vectors / scales[..., None].double()
    return steps.round().clamp(-_LARGEST, _LARGEST)
