"""The pairs of elements within each set."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from manymatch.similarities.pairs import full_precision
from manymatch.similarities.unit import unit


def gram(*sets: Tensor) -> Tensor:
    """Cosines `(n, K, K)` of the elements of each of all `sets (n, K, D)`, in float32 or better."""
    elements = unit(torch.cat([full_precision(part) for part in sets]))
    with torch.autocast(elements.device.type, enabled=False):
        return elements @ elements.mT


def element_cosines(*sets: Tensor) -> Tensor:
    """`(n, K (K - 1) / 2)` cosines of the pairs j < k of each of all `sets (n, K, D)`; `(n, 0)` if
    K = 1."""
    pairs = _pairs(sets[0].shape[1], sets[0].device)
    return gram(*sets).flatten(1).index_select(1, pairs)


@lru_cache
@torch.inference_mode(False)
def _pairs(size: int, device: torch.device) -> Tensor:
    """The numbers of the pairs j < k among all `size * size`."""
    first, second = torch.triu_indices(size, size, offset=1, device=device)
    return first * size + second
