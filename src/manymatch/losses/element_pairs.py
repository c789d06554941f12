"""The pairs of elements within each set."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional

from manymatch.similarities.pairs import full_precision


def gram(vectors: Tensor) -> Tensor:
    """Cosines `(n, K, K)` of the elements of each set `(n, K, D)`, in float32 or better."""
    unit = functional.normalize(full_precision(vectors), dim=2)
    with torch.autocast(unit.device.type, enabled=False):
        return unit @ unit.mT


def element_cosines(vectors: Tensor) -> Tensor:
    """`(n, K (K - 1) / 2)` cosines of the pairs j < k of each set `(n, K, D)`; `(n, 0)` if K =
    1."""
    pairs = _pairs(vectors.shape[1], vectors.device)
    return gram(vectors).flatten(1).index_select(1, pairs)


@lru_cache
@torch.inference_mode(False)
def _pairs(size: int, device: torch.device) -> Tensor:
    """The numbers of the pairs j < k among all `size * size`."""
    first, second = torch.triu_indices(size, size, offset=1, device=device)
    return first * size + second
