"""The settings of one training on synthetic pairs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from manymatch.config.preset import Count, Positive
from manymatch.methods.swapped_labels import LabelSettings


class RunSettings(LabelSettings):
    """The settings of one training. `weight: 0` trains with the contrastive loss alone.

    The defaults are those of SwAMP, appendix E. The data are those of `pairs.py`.
    """

    tau: Positive = 0.01
    eta: Positive = 20.0
    margin: Positive = 0.1
    size: Count = 5
    """The size of the embeddings."""
    hidden: Count = 50
    """The units of each of the two hidden layers of an encoder."""
    epochs: Count = 100
    contrastive_epochs: Annotated[int, Field(ge=0)] = 0
    """The warm start: epochs with the contrastive loss alone, before `epochs`."""
    batch: Count = 128
    lr: Positive = 1e-3
