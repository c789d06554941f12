"""What one training on synthetic pairs is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from manymatch.config.recipe import Count, NonNegative, Positive
from manymatch.losses.swapped_labels import LabelSettings


class RunSettings(LabelSettings):
    """One training. The defaults are those of SwAMP's appendix; see `pairs.py` for the data.

    `weight: 0` is the contrastive loss alone.
    """

    tau: Positive = 0.01
    eta: Positive = 20.0
    weight: NonNegative = 1.0
    """Of the swapped labels; lambda."""
    margin: Positive = 0.2
    size: Count = 5
    """Of the embeddings."""
    hidden: Count = 50
    """Of the encoders' hidden layer."""
    epochs: Count = 100
    contrastive_epochs: Annotated[int, Field(ge=0)] = 0
    """Before them, with weight 0: the warm start."""
    batch: Count = 128
    lr: Positive = 1e-3
