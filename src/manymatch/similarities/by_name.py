"""The similarities that a preset may name, and how each ranks when training is over."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from pydantic import model_validator
from torch import Tensor, nn

from manymatch.config.preset import Positive
from manymatch.config.strict import Strict
from manymatch.similarities.chamfer import chamfer
from manymatch.similarities.cosine import cosine
from manymatch.similarities.match_probability import match_probability
from manymatch.similarities.max_match import max_match
from manymatch.similarities.mil import mil
from manymatch.similarities.smooth_chamfer import smooth_chamfer
from manymatch.similarities.top_match import top_match
from manymatch.similarities.unequal import of_unequal

SimilarityName = Literal["cosine", "mil", "mp", "chamfer", "smooth_chamfer", "max_match"]
InferenceRule = Literal["matching", "topk", "max", "smooth_chamfer"]
Similarity = Callable[[Tensor, Tensor], Tensor]


class SimilaritySettings(Strict):
    """A similarity of sets and its constants."""

    name: SimilarityName
    alpha: Positive = 16.0
    """Sharpness of smooth-Chamfer."""
    scale: Positive = 15.0
    """Of `mp`, `sigmoid(scale c + shift)`: where learning starts. As PCME's `sigmoid(15 - 15 d)` of
    distances d about its middle, d = 1, to first order."""
    shift: float = -7.5
    inference: InferenceRule | None = None
    """What MaxMatch ranks by: its own `matching`; the best cosines of all, as many as the smaller
    set has elements (`topk`, the default) or the best one (`max`); or `smooth_chamfer`."""

    @model_validator(mode="after")
    def _rule_has_its_similarity(self) -> SimilaritySettings:
        if self.inference is not None and self.name != "max_match":
            raise ValueError(f"'{self.inference}' is a rule of max_match, not of {self.name}")
        return self


class SetSimilarity(nn.Module):
    """`images (n, K, D)`, `texts (m, L, D)`, L2-normalised, -> scores `(n, m)`.

    Of sets of unequal size their masks, `(n, K)` and `(m, L)`, say what is real; only that counts.

    In training mode the similarity of that name; in evaluation mode what it ranks by. These
    differ for MaxMatch alone. Only `mp` has parameters: its scale (as logarithm, so that it stays
    positive) and shift.
    """

    def __init__(self, settings: SimilaritySettings) -> None:
        super().__init__()
        self.settings = settings
        if settings.name == "mp":
            self.log_scale = nn.Parameter(torch.tensor(math.log(settings.scale)))
            self.shift = nn.Parameter(torch.tensor(settings.shift))

    def forward(
        self,
        images: Tensor,
        texts: Tensor,
        image_mask: Tensor | None = None,
        text_mask: Tensor | None = None,
    ) -> Tensor:
        return of_unequal(self._chosen(), images, texts, image_mask, text_mask)

    def _chosen(self) -> Similarity:
        if self.settings.name == "mp":
            return partial(match_probability, scale=self.log_scale.exp(), shift=self.shift)
        if self.settings.name == "max_match" and not self.training:
            return self._rules()[self.settings.inference or "topk"]
        return self._similarities()[self.settings.name]

    def _similarities(self) -> dict[str, Similarity]:
        return {
            "cosine": cosine,
            "mil": mil,
            "chamfer": chamfer,
            "smooth_chamfer": partial(smooth_chamfer, alpha=self.settings.alpha),
            "max_match": max_match,
        }

    def _rules(self) -> dict[str, Similarity]:
        return {
            "matching": max_match,
            "topk": top_match,
            "max": partial(top_match, k=1),
            "smooth_chamfer": partial(smooth_chamfer, alpha=self.settings.alpha),
        }
