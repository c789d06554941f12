"""Pairs of points in two generated modalities, with classes that no loss sees.

The pairs follow SwAMP, appendix E. A class is a Gaussian in R^5. A pair is one draw from the
Gaussian; two random networks, one for each modality, map the draw to R^100. Each network has two
hidden layers of 50 units. Each of 20 classes has 500 pairs. All pairs are shuffled; 7,000 are for
training, 1,000 for validation and 2,000 for the test.

The appendix leaves three choices open. Ours are: the Gaussians have unit covariance and means from
N(0, 3^2 I), so that classes hardly overlap; hidden units are ReLUs; weights are drawn from
N(0, 1 / inputs) and biases from N(0, 1).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

CLASSES, LATENT, UNITS, WIDTH, PAIRS_A_CLASS = 20, 5, 50, 100, 500
HIDDEN_LAYERS = 2
TRAIN, VALIDATION = 7000, 1000
SPREAD = 3.0


class Pairs(NamedTuple):
    """n pairs: the points `a (n, 100)` and `b (n, 100)`, and the classes `label (n,)`."""

    a: Tensor
    b: Tensor
    label: Tensor

    def rows(self, rows: slice | Tensor) -> Pairs:
        return Pairs(self.a[rows], self.b[rows], self.label[rows])


def make_pairs(seed: int) -> tuple[Pairs, Pairs, Pairs]:
    """Training, validation and test pairs. The seed decides the classes, networks and draws."""
    generator = torch.Generator().manual_seed(seed)
    means = SPREAD * torch.randn(CLASSES, 1, LATENT, generator=generator)
    draws = torch.randn(CLASSES, PAIRS_A_CLASS, LATENT, generator=generator)
    points = (means + draws).flatten(0, 1)
    label = torch.arange(CLASSES).repeat_interleave(PAIRS_A_CLASS)
    order = torch.randperm(len(points), generator=generator)
    pairs = Pairs(_mapped(points, generator), _mapped(points, generator), label).rows(order)
    test = TRAIN + VALIDATION
    return pairs.rows(slice(TRAIN)), pairs.rows(slice(TRAIN, test)), pairs.rows(slice(test, None))


def _mapped(points: Tensor, generator: torch.Generator) -> Tensor:
    """`points (n, 5)` mapped to `(n, 100)` by a new random network."""
    for _ in range(HIDDEN_LAYERS):
        points = _layer(points, UNITS, generator).relu()
    return _layer(points, WIDTH, generator)


def _layer(inputs: Tensor, units: int, generator: torch.Generator) -> Tensor:
    weights = torch.randn(inputs.shape[1], units, generator=generator) / inputs.shape[1] ** 0.5
    return inputs @ weights + torch.randn(units, generator=generator)
