"""COCO's small setting: its 5,000 test images as five galleries of 1,000."""

from __future__ import annotations

from typing import Any

import torch

from manymatch.evaluation.protocols.recall import recall
from manymatch.evaluation.protocols.subject import DoesNotApply, Subject, part
from manymatch.evaluation.ranking.blocks import runs

IMAGES, FOLD = 5000, 1000


def folds(images: int) -> list[slice]:
    """The five runs of 1,000 images; `DoesNotApply` to another number than 5,000."""
    if images != IMAGES:
        raise DoesNotApply(f"COCO's 1K setting is of {IMAGES:,} test images; here are {images:,}")
    return list(runs(IMAGES, FOLD))


def coco_1k(subject: Subject) -> dict[str, Any]:
    """`i2t`, `t2i` and `rsum` (`protocols.recall`): the means over the folds.

    References:
        Karpathy and Fei-Fei, CVPR 2015; as averaged by SCAN and all that follow it.
    """
    found = [part(subject.found, fold) for fold in folds(len(subject.found.images))]
    return mean(
        [
            recall(subject.score, each.images, each.texts, each.owner, t2i_score=subject.t2i_score)
            for each in found
        ]
    )


def mean(values: list[Any]) -> Any:
    """The mean of each number of nested metrics of the same keys."""
    first = values[0]
    if isinstance(first, dict):
        return {key: mean([value[key] for value in values]) for key in first}
    return torch.tensor(values, dtype=torch.float64).mean().item()
