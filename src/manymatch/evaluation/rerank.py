"""The stage `rerank`: a caption matches an image only if its least likely entity does.

Pham et al., CORA, CVPR 2024, eq. 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from manymatch.config.layout import ResultFiles
from manymatch.evaluation.ensemble import Ensemble
from manymatch.evaluation.protocols.recall import recall_of
from manymatch.evaluation.ranking.ranks import Mixture, rank_each
from manymatch.evaluation.split_results import EvaluationOptions, rank_split, write
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.model.blocks import Score
from manymatch.model.embed import Embedded
from manymatch.networks.device import pick_device
from manymatch.results.machine import Clock, record
from manymatch.util.errors import ConfigError

SUFFIX = "+rerank"
"""Follows the model's name in the name of the re-ranked result."""

BETAS = tuple(step / 20 for step in range(21))


def rerank(
    members: Sequence[tuple[Path, Path]],
    written: ResultFiles,
    options: EvaluationOptions,
) -> None:
    """Evaluate a trained model, or an ensemble, with `reranked` scores.

    An ensemble (table 4) first averages the scores of captions and of entities over its members;
    the minimum over a caption's entities is taken over these means. Beta is the best value on the
    split `validation`.

    Args:
        members: the folder of the trained model and the folder of its shards, for each member.

    Raises:
        ConfigError: a member's method gives captions no entities, or a member is named twice.
        DataError: the members have different images, captions or entities.
        CheckpointError: as for `evaluate`.
    """
    clock = Clock()
    device = pick_device()
    held_out = _embed_entities(members, "validation", device)
    beta = best_beta(rsum_by_beta(held_out.score, held_out.embedded))

    models = _embed_entities(members, options.split, device)
    score, dataset = reranked(models.score, beta), models.dataset
    result = rank_split(models.embedded, score, None, dataset, models.stored, options)

    origin = models.origin(__name__)
    name = origin["preset"] + SUFFIX
    tag = f"{origin['method']}-{name}"
    identity = {"preset": name, "dataset": dataset, "split": options.split, "rerank_beta": beta}
    write(written, result, tag, origin | identity)
    record(written.machine, "rerank", clock.usage(str(device)))


def _embed_entities(
    members: Sequence[tuple[Path, Path]], split: str, device: torch.device
) -> Ensemble:
    """Embed `split` with the members, which must all give the same entities."""
    models = Ensemble.embed(members, split, device)
    for member in models.members:
        check_entities(member.method, member.embedded, f"re-ranking with '{member.folder.name}'")
    models.check_same_entities()
    return models


def check_entities(method: Method, embedded: Embedded, user: str) -> None:
    """Check that the captions have entities, which `user` needs (else a `ConfigError`)."""
    if embedded.texts.entities is None:
        raise ConfigError(
            f"{user} needs the entities of captions, and the method "
            f"'{type(method).__module__.rpartition('.')[2]}' gives none. Use the method 'cora'."
        )


def rsum_by_beta(score: Score, embedded: Embedded) -> dict[float, float]:
    """The rsum on an embedded split for each beta of `BETAS`. Scores are computed once."""

    def mixture(beta: float) -> Mixture:
        return lambda scores: [_mixed(scores[0], scores[1], beta)]

    rankings = rank_each(
        [score, partial(lowest_entity, score)], [mixture(beta) for beta in BETAS], *embedded.gallery
    )
    return {beta: recall_of(ranking)["rsum"] for beta, ranking in zip(BETAS, rankings, strict=True)}


def best_beta(rsums: dict[float, float]) -> float:
    """The beta of the highest rsum; among equals the largest, which changes the scores least."""
    return max(rsums, key=lambda beta: (rsums[beta], beta))


def reranked(score: Score, beta: float) -> Score:
    """`beta s(v, t) + (1 - beta) min_k s(v, e_k)` over the entities e_k of each caption (eq. 14).

    `score` must accept the entities of captions in place of captions.
    """

    def mixed(images: Embeddings, texts: Embeddings) -> Tensor:
        return _mixed(score(images, texts), lowest_entity(score, images, texts), beta)

    return mixed


def _mixed(whole: Tensor, lowest: Tensor, beta: float) -> Tensor:
    return beta * whole + (1 - beta) * lowest


def lowest_entity(score: Score, images: Embeddings, texts: Embeddings) -> Tensor:
    """`(n_images, n_texts)`: the score of each caption's least likely entity. Every caption must
    have an entity."""
    parts = texts.parts()
    scores = score(images, Embeddings(parts["entities"][:, None]))
    lowest = scores.new_full((len(images), len(texts)), torch.inf)
    caption_index = parts["entity_caption"].expand(len(images), -1)
    return lowest.scatter_reduce(1, caption_index, scores, "amin")
