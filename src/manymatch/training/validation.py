"""What the validation split says about a method: its recalls, and how far to trust a score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from manymatch.evaluation.protocols.recall import recall
from manymatch.evaluation.protocols.relevance import NO_JUDGMENTS, read_judgments
from manymatch.evaluation.ranking.ranks import rank
from manymatch.methods.shared.method import Method
from manymatch.model.embed import Embedded, embed, inference
from manymatch.training.data import Data, ValidationBatches
from manymatch.training.gather import gather
from manymatch.training.progress_bar import tracked

_CUTS = ("r1", "r5", "r10")
_DEPTH = 100
"""The results of a query that count for `precision_by_score`."""


def validate(
    method: Method, batches: ValidationBatches, device: torch.device, rank: int = 0
) -> dict[str, float]:
    """Recalls of the whole validation split in percent: `i2t_r1` ... `t2i_r10`, and `rsum`.

    Args:
        method: on `device`.
        batches: the split, or the part of this process.
        device: where `method` is.
        rank: number of this process among those that call this function together. Only the first
            one gets recalls.
    """
    split = _embedded(method, batches, device, rank)
    if rank:
        return {}
    with inference(method, device):  # MaxMatch has another score in training
        values = recall(
            method.score, split.images, split.texts, split.image_index, t2i_score=method.t2i_score
        )
    recalls = {f"{way}_{cut}": values[way][cut] for way in ("i2t", "t2i") for cut in _CUTS}
    return {**recalls, "rsum": values["rsum"]}


@dataclass(frozen=True)
class Precision:
    """The share of right results at a score, on the validation split.

    Attributes:
        curves: for `image` and `text`, the side that asks: the scores, ascending, and the shares in
            0..1 at them, which never fall. Between two scores the share is on the line between
            theirs. The shares are the isotonic regression over the best 100 results of every query.
        images: the number of images of the split.
        right: which pairs count as right: "all" true pairs, where the data set knows them; "judged"
            ones besides an image's own captions; or only an image's "own" captions.
    """

    curves: dict[str, list[list[float]]]
    images: int
    right: Literal["all", "judged", "own"]


def precision_by_score(
    method: Method,
    data: Data,
    images_per_batch: int,
    device: torch.device,
    relevance: Path | None = None,
) -> Precision:
    """How far to trust a score.

    Args:
        relevance: the data set's judgments (`datasets.base.RELEVANCE`); None: there are none.

    Raises:
        DataError: `relevance` cannot be used.
    """
    split = _embedded(method, ValidationBatches(data, images_per_batch, method.read_graph), device)
    with inference(method, device):
        ranking = rank(method.score, *split.gallery, depth=_DEPTH, t2i_score=method.t2i_score)
    image_of, to_texts, to_images = split.image_index, ranking.i2t, ranking.t2i
    judgments = NO_JUDGMENTS
    if relevance is not None:
        judgments = read_judgments(relevance, split.image_ids, split.caption_ids, image_of)
    texts, images = torch.arange(len(split.texts)), torch.arange(len(split.images))
    true = torch.cat([torch.stack([image_of, texts], 1), judgments.extra])
    right = _numbers(true[:, 0], true[:, 1], len(texts))
    curves = {
        "image": _curve(
            to_texts.scores,
            torch.isin(_numbers(images[:, None], to_texts.items, len(texts)), right),
        ),
        "text": _curve(
            to_images.scores,
            torch.isin(_numbers(to_images.items, texts[:, None], len(texts)), right),
        ),
    }
    if judgments.complete:
        return Precision(curves, len(images), "all")
    return Precision(curves, len(images), "judged" if judgments else "own")


def _numbers(images: torch.Tensor, texts: torch.Tensor, count: int) -> torch.Tensor:
    """A number for each pair of an image and one of `count` texts."""
    return images * count + texts


def _curve(scores: torch.Tensor, right: torch.Tensor) -> list[list[float]]:
    """The ends of the steps of the isotonic regression of `right` on `scores`."""
    from scipy.optimize import isotonic_regression  # takes a quarter of a second to load

    values, step, counts = np.unique(scores.numpy(), return_inverse=True, return_counts=True)
    shares = np.bincount(step.ravel(), right.numpy().ravel()) / counts
    fitted = isotonic_regression(shares, weights=counts)
    ends = np.union1d(fitted.blocks[:-1], fitted.blocks[1:] - 1)
    return [values[ends].tolist(), np.round(fitted.x[ends], 4).tolist()]


def _embedded(
    method: Method, batches: ValidationBatches, device: torch.device, rank: int = 0
) -> Embedded:
    """The embedded split. If the processes share the batches, all have the embeddings of the whole
    split, but the ids of their part alone."""
    title = "" if rank else "validation"
    split = embed(method, tracked(batches, title, len(batches)), device)
    if not batches.shared:
        return split
    index = split.image_index.to(device)
    images, texts, index = gather(split.images.scored(), split.texts.scored(), index)
    return replace(split, images=images, texts=texts, image_index=index.cpu())
