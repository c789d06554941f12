"""How good a method is on the validation split."""

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
    """Recalls of the whole validation split in percent: `i2t_r1` ... `t2i_r10`, and `rsum`."""
    stream = batches(data.shards, "validation", data.vocabulary, images_per_batch)
    found = embed(method, stream, device)
    values = recall(
        method.score, found.images, found.texts, found.image_index, t2i_score=method.t2i_score
    )
    recalls = {f"{way}_{cut}": values[way][cut] for way in ("i2t", "t2i") for cut in _CUTS}
    return {**recalls, "rsum": values["rsum"]}
