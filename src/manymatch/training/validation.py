"""The recalls of a method on the validation split."""

from __future__ import annotations

import torch

from manymatch.evaluation.embed import embed
from manymatch.evaluation.protocols.recall import recall
from manymatch.methods.base import Method
from manymatch.shards.read import batches
from manymatch.training.data import Data

_CUTS = ("r1", "r5", "r10")


def validate(
    method: Method, data: Data, images_per_batch: int, device: torch.device
) -> dict[str, float]:
    """Recalls of the whole validation split in percent: `i2t_r1` ... `t2i_r10`, and `rsum`.

    Args:
        method: on `device`.
        data: the shards with the split `validation`.
        images_per_batch: number of images that are encoded at once.
        device: where `method` is.
    """
    stream = batches(data.shards, "validation", data.vocabulary, images_per_batch)
    split = embed(method, stream, device)
    values = recall(
        method.score, split.images, split.texts, split.image_index, t2i_score=method.t2i_score
    )
    recalls = {f"{way}_{cut}": values[way][cut] for way in ("i2t", "t2i") for cut in _CUTS}
    return {**recalls, "rsum": values["rsum"]}
