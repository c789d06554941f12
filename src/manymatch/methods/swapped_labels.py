"""The settings of SwAMP's pseudo-labels, and the loss that they describe."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from manymatch.config.preset import Count, NonNegative, Positive
from manymatch.config.strict import Strict
from manymatch.losses.pseudo_labels import SwappedLabels


class LabelSettings(Strict):
    """The defaults are the paper's for images and captions. The paper states neither the rounds
    nor, for this task, eta."""

    weight: NonNegative = 1.0
    """The paper's lambda: weight of L_s beside L_c, see `objective`. 0: L_c alone."""
    n_classes: Count = 1000
    queue: Annotated[int, Field(ge=0)] = 1280
    """Pairs in the queue, with those of the batch; 0: the batch alone."""
    tau: Positive = 0.025
    """Temperature of the class probabilities."""
    eta: Positive = 5.0
    """Inverse regularisation of the assignment."""
    rounds: Count | None = 3
    """Rounds of Sinkhorn; null where a tolerance is set."""
    tolerance: Annotated[float, Field(ge=1e-10)] | None = None
    """The error of the classes' shares to reach, instead of rounds."""
    assignment: Literal["soft", "hard"] = "soft"
    """`hard`: each sample has only its likeliest class."""

    @model_validator(mode="after")
    def _rounds_or_tolerance(self) -> LabelSettings:
        if (self.rounds is None) == (self.tolerance is None):
            raise ValueError("set either rounds or tolerance, and the other to null")
        return self


def swapped_labels(settings: LabelSettings, size: int) -> SwappedLabels | None:
    """The loss L_s on embeddings of `size` dimensions; None where its weight is 0."""
    if not settings.weight:
        return None
    arguments = {name: getattr(settings, name) for name in LabelSettings.model_fields}
    return SwappedLabels(size, **arguments)
