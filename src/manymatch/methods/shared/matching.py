"""What the losses of methods share: weighted terms, and the losses on scores of VSE++, SwAMP and
SigLIP."""

import math
from collections.abc import Callable
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from manymatch.config.preset import Positive
from manymatch.config.strict import Strict
from manymatch.losses.contrastive import info_nce, sigmoid_pairs
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

    objective: Literal["triplet", "info_nce", "sigmoid"] = "triplet"
    margin: Positive = 0.2
    temperature: Positive = 0.05
    """Temperature of `info_nce`."""
    sigmoid_scale: Positive = 10.0
    """First value of the learned factor t of the scores in `sigmoid`; the default is SigLIP's."""
    sigmoid_bias: float = -10.0
    """First value of the learned bias b in `sigmoid`; the default is SigLIP's, whose batches have
    32,768 pairs. The true pairs of a batch of B images are a share 1 / B, the sigmoid of about
    -log B."""
    all_negatives_epochs: Annotated[int, Field(ge=0)] = 1
    """Number of first epochs in which the triplet loss sums over all negatives: the hardest
    negatives alone can make fresh weights collapse."""


class Matching(nn.Module):
    """The triplet loss with the hardest negatives (with all in the first epochs), InfoNCE, or
    SigLIP's loss with its learned scale and bias."""

    def __init__(self, settings: MatchingSettings) -> None:
        super().__init__()
        self.settings = settings
        self.mining: Mining = "hardest"
        if settings.objective == "sigmoid":
            self.log_scale = nn.Parameter(torch.tensor(math.log(settings.sigmoid_scale)))
            self.bias = nn.Parameter(torch.tensor(settings.sigmoid_bias))

    def start_epoch(self, epoch: int) -> None:
        """Choose the negatives of the epoch (0-based); called before each training epoch."""
        self.mining = mining_of_epoch(epoch, self.settings.all_negatives_epochs)

    def terms(
        self, scores: Tensor, image_index: Tensor, left_out: Tensor | None = None
    ) -> dict[str, Tensor]:
        """The named term of `scores (n, m)`, a mean over the m captions; `image_index
        (m,)` is the row of each caption's image, `left_out (n, m)` says which pairs are neither
        positives nor negatives."""
        settings = self.settings
        if settings.objective == "info_nce":
            return {"info_nce": info_nce(scores, image_index, settings.temperature, left_out)}
        if settings.objective == "sigmoid":
            logits = scores * self.log_scale.exp() + self.bias
            return {"sigmoid": sigmoid_pairs(logits, image_index, left_out)}
        return {"triplet": triplet(scores, image_index, settings.margin, self.mining, left_out)}
