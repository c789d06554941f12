"""The similarities that a preset may name, and the rules by which they rank after training."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor, nn

from manymatch.config.preset import Positive
from manymatch.config.strict import Strict
from manymatch.similarities.matchings import max_match, top_match
from manymatch.similarities.sets import chamfer, match_probability, mil, smooth_chamfer
from manymatch.similarities.vectors import cosine, full_precision

SimilarityName = Literal["cosine", "mil", "mp", "chamfer", "smooth_chamfer", "max_match"]
InferenceRule = Literal["matching", "topk", "max", "smooth_chamfer"]
Similarity = Callable[[Tensor, Tensor], Tensor]


class SimilaritySettings(Strict):
    """A similarity of sets, and the rule by which it ranks."""

    name: SimilarityName
    """`mp` is `match_probability`."""
    alpha: Positive = 16.0
    """Sharpness of smooth-Chamfer."""
    scale: Positive = 1.0
    """`mp` is `sigmoid(scale c + shift)`: where the learned scale and shift start. The defaults are
    those of DivE's released code."""
    shift: float = 0.0
    inference: InferenceRule | None = None
    """How `max_match` ranks. `matching`: as in training. `topk`, the rule of null: the mean of
    `exp(c) - 1` over the largest cosines, as many as the smaller set has elements. `max`: the
    largest cosine alone. `smooth_chamfer`: that similarity."""

    @model_validator(mode="after")
    def _rule_has_its_similarity(self) -> Self:
        if self.inference is not None and self.name != "max_match":
            raise ValueError(f"'{self.inference}' is a rule of max_match, not of {self.name}")
        return self


class SetSimilarity(nn.Module):
    """A similarity of sets by its name, and the rule by which it ranks.

    In training mode the module is the similarity of that name. In evaluation mode it is the rule
    by which retrieval ranks, which differs for MaxMatch alone. Only `mp` has parameters: its scale
    (as a logarithm, so that it stays positive) and its shift.
    """

    def __init__(self, settings: SimilaritySettings) -> None:
        super().__init__()
        self.name, self.alpha = settings.name, settings.alpha
        self.inference = settings.inference
        if self.name == "mp":
            self.log_scale = nn.Parameter(torch.tensor(math.log(settings.scale)))
            self.shift = nn.Parameter(torch.tensor(settings.shift))

    def forward(
        self,
        images: Tensor,
        texts: Tensor,
        image_mask: Tensor | None = None,
        text_mask: Tensor | None = None,
    ) -> Tensor:
        """Scores `(n, m)` of `images (n, K, D)` and `texts (m, L, D)`, L2-normalised.

        `image_mask (n, K)` and `text_mask (m, L)` are True for the real elements of sets of
        unequal size; None: all elements are real.
        """
        return masked_scores(self._similarity(), images, texts, image_mask, text_mask)

    def _similarity(self) -> Similarity:
        if self.name == "mp":
            return partial(match_probability, scale=self.log_scale.exp(), shift=self.shift)
        smooth = partial(smooth_chamfer, alpha=self.alpha)
        if self.name == "max_match" and not self.training:
            rules: dict[InferenceRule, Similarity] = {
                "matching": max_match,
                "topk": top_match,
                "max": partial(top_match, k=1),
                "smooth_chamfer": smooth,
            }
            return rules[self.inference or "topk"]
        similarities: dict[SimilarityName, Similarity] = {
            "cosine": cosine,
            "mil": mil,
            "chamfer": chamfer,
            "smooth_chamfer": smooth,
            "max_match": max_match,
        }
        return similarities[self.name]


def masked_scores(
    similarity: Callable[[Tensor, Tensor], Tensor],
    images: Tensor,
    texts: Tensor,
    image_mask: Tensor | None,
    text_mask: Tensor | None,
) -> Tensor:
    """The `similarity` of each pair of sets, of their real elements alone.

    Sets of equal size are compared together, without padding. The result is exact for every
    similarity. The cost grows with the number of distinct sizes.

    Args:
        similarity: `(n, K, D), (m, L, D) -> (n, m)`; the score of a pair depends on no other pair.
        images: `(n, K, D)`.
        texts: `(m, L, D)`.
        image_mask, text_mask: `(n, K)` and `(m, L)` bool, True for real elements; None: all are.

    Raises:
        ValueError: a set has no real element.
    """
    if image_mask is None and text_mask is None:
        return similarity(images, texts)
    scores = full_precision(images).new_empty(len(images), len(texts))
    columns = _size_groups(texts, text_mask)
    for row, cut_images in _size_groups(images, image_mask):
        for column, cut_texts in columns:
            scores[row[:, None], column] = similarity(cut_images, cut_texts)
    return scores


def _size_groups(sets: Tensor, mask: Tensor | None) -> list[tuple[Tensor, Tensor]]:
    """For each size the rows `(s,)` of the sets of this size, and their elements `(s, size, D)`."""
    if mask is None:
        mask = torch.ones(sets.shape[:2], dtype=torch.bool, device=sets.device)
    sizes = mask.sum(1)
    if not sizes.all():
        raise ValueError("a set has no real element: its mask is False throughout")
    groups = []
    for size in sizes.unique().tolist():
        rows = (sizes == size).nonzero()[:, 0]
        groups.append((rows, sets[rows][mask[rows]].view(len(rows), size, -1)))
    return groups
