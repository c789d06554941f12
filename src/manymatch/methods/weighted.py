"""The weighted terms of a loss."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from manymatch.config.strict import Strict

Term = tuple[float, Callable[[], Tensor]]


def weighted(scale: float = 1.0, /, **terms: Term) -> dict[str, Tensor]:
    """`scale` times the product of each `(weight, term)`; a term of weight 0 is not computed and
    left out."""
    return {
        name: term() if scale * weight == 1.0 else scale * weight * term()
        for name, (weight, term) in terms.items()
        if weight
    }


def check_weights(settings: Strict, *names: str) -> None:
    """Check that a loss matches images and captions.

    Args:
        settings: the settings of a method.
        names: the fields with the weights of the losses that match.

    Raises:
        ValueError: all these weights are 0.
    """
    if not any(getattr(settings, name) for name in names):
        raise ValueError(f"{' and '.join(names)} are all 0: no loss matches images and captions")
