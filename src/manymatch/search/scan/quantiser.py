"""int8 codes of vectors, and the numbers that bound the errors of their products.

The code of x is x' = scale times whole numbers from -127 to 127, and a product has the bound
`|x y - x' y'| <= |x'| |y - y'| + |x - x'| |y|`. Long vectors that nearly lie in a space of fewer
dimensions are projected to it first. Their parts outside add at most the product of both norms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_LARGEST = 127
_DIMENSIONS = 256
"""Dimensions of the space to which vectors of at least twice as many numbers are projected."""
_MOST_OUTSIDE = 0.01
"""The part of the sum of squares that may lie outside the space."""
_UP = 1 + 2.0**-20
"""More than the rounding of a few operations in float32."""


@dataclass(frozen=True)
class Query:
    """The codes `(L, D)` of a query's vectors, which share one `scale`.

    `weights` belong to the numbers that `Quantiser.items` gives: the sum of the products of weights
    and numbers bounds the error of a product. The last weight, 1, is for what is added to products.
    """

    codes: NDArray[np.int8]
    scale: float
    weights: tuple[float, ...]


class Quantiser:
    """Makes the codes of vectors; `basis (D, P)` has orthonormal columns, None: no projection."""

    def __init__(self, basis: Tensor | None) -> None:
        self.basis = basis

    @staticmethod
    def fit(vectors: Tensor) -> Quantiser:
        """The quantiser for vectors such as `vectors (n, D)` float64."""
        if vectors.shape[1] < 2 * _DIMENSIONS or len(vectors) < 2 * _DIMENSIONS:
            return Quantiser(None)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            basis = torch.svd_lowrank(vectors, _DIMENSIONS)[2]
        inside = (vectors @ basis).square().sum()
        enough = inside >= (1 - _MOST_OUTSIDE) * vectors.square().sum()
        return Quantiser(basis if enough else None)

    @property
    def bounds(self) -> int:
        """The number of bounds for every vector of an item."""
        return 2 if self.basis is None else 3

    def items(self, vectors: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The codes `(..., P)` int8, scales `(...)` and bounds, `(...)` each, of float64 `vectors
        (..., D)`."""
        inside, outside = self._parts(vectors)
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
        return Query(codes.to(torch.int8).numpy(), float(scale), (*weights, 1.0))

    def _parts(self, vectors: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The coordinates inside the space, and what is outside, if there is a space."""
        if self.basis is None:
            return vectors, []
        inside = vectors @ self.basis
        return inside, [vectors - inside @ self.basis.T]


def _scales(largest: Tensor) -> Tensor:
    """float32 steps, 1 for vectors of zeros."""
    scales = (largest / _LARGEST).float()
    return scales.where(scales > 0, 1.0)


def _codes(vectors: Tensor, scales: Tensor) -> Tensor:
    steps = vectors / scales[..., None].double()
    return steps.round().clamp(-_LARGEST, _LARGEST)
