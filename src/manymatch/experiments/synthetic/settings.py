"""The settings of one training on synthetic pairs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from manymatch.config.preset import Count, Positive
from manymatch.methods.swapped_labels import LabelSettings


class RunSettings(LabelSettings):
    """One training. The defaults are those of SwAMP's appendix E; see `pairs.py` for the data.

    `weight: 0` is the contrastive loss alone.
    """

    tau: Positive = 0.01
    eta: Positive = 20.0
    margin: Positive = 0.1
    size: Count = 5
    """Of the embeddings."""
    hidden: Count = 50
    """Units of each of the encoders' two hidden layers."""
    epochs: Count = 100
    contrastive_epochs: Annotated[int, Field(ge=0)] = 0
    """Before them, with weight 0: the warm start."""
    batch: Count = 128
    lr: Positive = 1e-3
