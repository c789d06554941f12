"""Measures on the validation split: the recalls of a method, and its precision at each score."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manymatch.evaluation.protocols.recall import recall
from manymatch.evaluation.protocols.relevance import NO_JUDGMENTS, read_judgments
from manymatch.evaluation.ranking.metrics import CUTS
from manymatch.evaluation.ranking.ranks import rank
from manymatch.methods.shared.method import Method
from manymatch.model.embed import Embedded, embed, inference
from manymatch.training.data import Data, ValidationBatches
from manymatch.training.gather import gather
from manymatch.util.errors import DivergenceError
from manymatch.util.progress import track

_DEPTH = 100
"""The results of a query that count for `precision_by_score`."""


def validate(
    method: Method, batches: ValidationBatches, device: torch.device, process_rank: int = 0
) -> dict[str, float]:
    """Recalls of the whole validation split in percent: `i2t_r1` ... `t2i_r10`, and `rsum`.

    Processes call this function together, each with its part of the `batches`. Only the first of
    them, whose `process_rank` is 0, gets recalls. `method` is on `device`.
    """
    split = _embedded(method, batches, device, process_rank)
    if process_rank:
        return {}
    with inference(method, device):  # MaxMatch has another score in training
        values = recall(
            method.score, split.images, split.texts, split.image_index, t2i_score=method.t2i_score
        )
    recalls = {f"{way}_r{cut}": values[way][f"r{cut}"] for way in ("i2t", "t2i") for cut in CUTS}
    return {**recalls, "rsum": values["rsum"]}


def precision_by_score(
    method: Method,
    data: Data,
    images_per_batch: int,
    device: torch.device,
    relevance: Path | None = None,
) -> dict[str, Any]:
    """The precision at each score: the facts `precision` and `precision_of` of a model.

    `precision` has the keys `image` and `text` (the query's side). Each value holds ascending
    scores and the precision in 0..1 at each score, which never decreases. Between two scores the
    precision is on the line between theirs. The values are the isotonic regression over the best
    100 results of each query.

    `precision_of` holds the number of `images` of the split, and which pairs are `right`: "all"
    true pairs, where the data set knows them; "judged" ones besides an image's own captions; or
    only an image's "own" captions. `relevance` are the data set's judgments
    (`datasets.base.RELEVANCE`), if there are any.
    """
    split = _embedded(method, ValidationBatches(data, images_per_batch, method.read_graph), device)
    with inference(method, device):
        ranking = rank(method.score, *split.gallery, depth=_DEPTH, t2i_score=method.t2i_score)
    image_of, judgments = split.image_index, NO_JUDGMENTS
    if relevance is not None:
        judgments = read_judgments(relevance, split.image_ids, split.caption_ids, image_of)
    images, texts = torch.arange(len(split.images)), torch.arange(len(image_of))
    true = torch.cat([torch.stack([image_of, texts], 1), judgments.extra])
    right = true[:, 0] * len(texts) + true[:, 1]  # a number for each pair
    pairs = (
        images[:, None] * len(texts) + ranking.i2t.items,
        ranking.t2i.items * len(texts) + texts[:, None],
    )
    which = "all" if judgments.complete else "judged" if judgments else "own"
    return {
        "precision": {
            "image": _curve(ranking.i2t.scores, torch.isin(pairs[0], right)),
            "text": _curve(ranking.t2i.scores, torch.isin(pairs[1], right)),
        },
        "precision_of": {"images": len(images), "right": which},
    }


def _curve(scores: torch.Tensor, right: torch.Tensor) -> list[list[float]]:
    """The ends of the steps of the isotonic regression of `right` on `scores`."""
    from scipy.optimize import isotonic_regression  # takes a quarter of a second to load

    values, step, counts = np.unique(scores.numpy(), return_inverse=True, return_counts=True)
    shares = np.bincount(step.ravel(), right.numpy().ravel()) / counts
    fitted = isotonic_regression(shares, weights=counts)
    ends = np.union1d(fitted.blocks[:-1], fitted.blocks[1:] - 1)
    return [values[ends].tolist(), np.round(fitted.x[ends], 4).tolist()]


def _embedded(
    method: Method, batches: ValidationBatches, device: torch.device, process_rank: int = 0
) -> Embedded:
    """The embedded split. If the processes share the batches, each process has the embeddings of
    the whole split and the ids of its own part. It is a `DivergenceError` if all embeddings of
    images or captions are zero, as they are when the squares of larger values are infinite."""
    title = "" if process_rank else "validation (batches)"
    split = embed(method, track(batches, title, len(batches), passing=True), device)
    if batches.shared:
        index = split.image_index.to(device)
        images, texts, index = gather(split.images.scored(), split.texts.scored(), index)
        split = replace(split, images=images, texts=texts, image_index=index.cpu())
    # All processes have the same embeddings here, so that all of them end.
    for side, embeddings in {"image": split.images, "caption": split.texts}.items():
        if not bool(embeddings.vectors.any()):
            raise DivergenceError(
                f"validation: the embedding of every {side} is zero: training diverged, or all "
                "features are zero. Lower training.optimizer.lr, or check the features."
            )
    return split
