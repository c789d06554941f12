"""COCO's small setting: the 5,000 test images as five galleries of 1,000."""

from __future__ import annotations

from typing import Any

import torch

from manymatch.evaluation.protocols.recall import recall
from manymatch.evaluation.protocols.subject import DoesNotApply, Subject, part
from manymatch.evaluation.ranking.blocks import runs

IMAGES, FOLD = 5000, 1000


def folds(images: int) -> list[slice]:
    """The five runs of 1,000 images; `DoesNotApply` unless there are 5,000 images."""
    if images != IMAGES:
        raise DoesNotApply(f"COCO's 1K setting needs all {IMAGES:,} test images, not {images:,}")
    return list(runs(IMAGES, FOLD))


def coco_1k(subject: Subject) -> dict[str, Any]:
    """`i2t`, `t2i` and `rsum` (`protocols.recall`): the means over the folds.

    References:
        Karpathy and Fei-Fei, CVPR 2015; averaged as in SCAN and its followers.
    """
    parts = [part(subject.embedded, fold) for fold in folds(len(subject.embedded.images))]
    return mean(
        [
            recall(
                subject.score,
                fold.images,
                fold.texts,
                fold.image_index,
                t2i_score=subject.t2i_score,
            )
            for fold in parts
        ]
    )


def mean(values: list[Any]) -> Any:
    """The mean of each number of nested metrics with the same keys."""
    first = values[0]
    if isinstance(first, dict):
        return {key: mean([value[key] for value in values]) for key in first}
    return torch.tensor(values, dtype=torch.float64).mean().item()
