"""What the losses of methods share: weighted terms, and the losses on scores of VSE++ and SwAMP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor

from manymatch.config.preset import Positive
from manymatch.config.strict import Strict
from manymatch.losses.contrastive import info_nce
from manymatch.losses.triplets import Mining, mining_of_epoch, triplet

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


class MatchingSettings(Strict):
    """The defaults are VSE++'s."""

    objective: Literal["triplet", "info_nce"] = "triplet"
    margin: Positive = 0.2
    temperature: Positive = 0.05
    """Temperature of `info_nce`."""
    all_negatives_epochs: Annotated[int, Field(ge=0)] = 1
    """Number of first epochs in which the triplet loss sums over all negatives: the hardest
    negatives alone can make fresh weights collapse."""


class Matching:
    """The triplet loss with the hardest negatives (with all in the first epochs), or InfoNCE."""

    def __init__(self, settings: MatchingSettings) -> None:
        self.settings = settings
        self.mining: Mining = "hardest"

    def start_epoch(self, epoch: int) -> None:
        """Choose the negatives of the epoch (0-based); called before each training epoch."""
        self.mining = mining_of_epoch(epoch, self.settings.all_negatives_epochs)

    def terms(self, scores: Tensor, image_index: Tensor) -> dict[str, Tensor]:
        """The named term of `scores (n, m)`, a mean over the m captions; `image_index
        (m,)` is the row of each caption's image."""
        settings = self.settings
        if settings.objective == "info_nce":
            return {"info_nce": info_nce(scores, image_index, settings.temperature)}
        return {"triplet": triplet(scores, image_index, settings.margin, self.mining)}
