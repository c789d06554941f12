"""The weighted terms of a loss."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

Term = tuple[float, Callable[[], Tensor]]


def weighted(scale: float = 1.0, /, **terms: Term) -> dict[str, Tensor]:
    """`scale` times the product of each `(weight, term)`; a term of weight 0 is not computed and
    left out."""
    return {
        name: term() if scale * weight == 1.0 else scale * weight * term()
        for name, (weight, term) in terms.items()
        if weight
    }
