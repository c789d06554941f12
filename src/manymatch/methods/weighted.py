"""The weighted terms of a loss."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

Term = tuple[float, Callable[[], Tensor]]


def weighted(**terms: Term) -> dict[str, Tensor]:
    """Each `(weight, term)` as their product; one of weight 0 is never computed."""
    return {name: weight * term() for name, (weight, term) in terms.items() if weight}
