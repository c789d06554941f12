"""The stage `rerank`: a caption is true of an image only if its least likely part is.

Pham et al., CORA, CVPR 2024, eq. 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from manymatch.config.layout import ResultFiles
from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.ensemble import Together
from manymatch.evaluation.outcome import Wanted, outcome, write
from manymatch.evaluation.protocols.recall import recall
from manymatch.evaluation.ranking.blocks import Score
from manymatch.methods.base import Embeddings, Method
from manymatch.system.device import pick_device
from manymatch.system.errors import ConfigError
from manymatch.system.machine import Clock, record

SUFFIX = "+rerank"
"""Behind a model's name, that of its results after re-ranking."""

BETAS = tuple(step / 20 for step in range(21))


def rerank(
    members: Sequence[tuple[Path, Path]],
    relevance: Path,
    written: ResultFiles,
    *,
    captions: Path | None = None,
    split: str = "test",
    depth: int = 100,
    samples: int = 12,
) -> None:
    """Evaluate a trained model, or several together, with `reranked` scores.

    Several models are one ensemble (table 4): scores of captions and of entities are averaged over
    the members first, and the minimum over a caption's entities is of these means. Beta is the
    best on the split `validation`.

    Args:
        members: of each the folder of the trained model and that of its shards.
        relevance, written, captions, split, depth, samples: as for `evaluate`.

    Raises:
        ConfigError: a member's method gives captions no entities, or a member is named twice.
        DataError: the members do not have the same images, captions and entities.
        CheckpointError: as for `evaluate`.
    """
    clock = Clock()
    device = pick_device()
    held_out = _with_entities(members, "validation", device)
    beta = best_beta(rsum_by_beta(held_out.score, held_out.found))

    together = _with_entities(members, split, device)
    score, dataset = reranked(together.score, beta), together.dataset
    wanted = Wanted(relevance, captions, depth, samples)
    result = outcome(together.found, score, None, dataset, together.stored, wanted)

    origin = together.origin(__name__)
    name = origin["preset"] + SUFFIX
    tag = f"{origin['method']}-{name}"
    identity = {"preset": name, "dataset": dataset, "split": split, "rerank_beta": beta}
    write(written, result, tag, origin | identity)
    record(written.machine, "rerank", clock.usage(str(device)))


def _with_entities(
    members: Sequence[tuple[Path, Path]], split: str, device: torch.device
) -> Together:
    """The members on `split`, all of which give the same entities."""
    together = Together.embed(members, split, device)
    for each in together.members:
        check_entities(each.method, each.found, f"re-ranking with '{each.folder.name}'")
    together.check_same_entities()
    return together


def check_entities(method: Method, found: Embedded, what: str) -> None:
    """Refuse a method whose captions have no entities, which `what` needs."""
    if found.texts.entities is None:
        raise ConfigError(
            f"{what} needs the entities of captions, which method "
            f"'{type(method).__module__.rpartition('.')[2]}' does not give; 'cora' does"
        )


def rsum_by_beta(
    score: Score, found: Embedded, betas: Sequence[float] = BETAS
) -> dict[float, float]:
    """The rsum on the embedded split with each beta."""
    parts = found.images, found.texts, found.owner
    return {beta: recall(reranked(score, beta), *parts)["rsum"] for beta in betas}


def best_beta(rsums: dict[float, float]) -> float:
    """That of the highest rsum; of several the largest, which changes the scores least."""
    return max(rsums, key=lambda beta: (rsums[beta], beta))


def reranked(score: Score, beta: float) -> Score:
    """`beta s(v, t) + (1 - beta) min_k s(v, e_k)` over the entities e_k of each caption (eq. 14).

    `score` must rate an image against an entity as it rates it against a caption.
    """

    def mixed(images: Embeddings, texts: Embeddings) -> Tensor:
        whole = score(images, texts)
        return beta * whole + (1 - beta) * lowest_entity(score, images, texts)

    return mixed


def lowest_entity(score: Score, images: Embeddings, texts: Embeddings) -> Tensor:
    """`(n_images, n_texts)`: the score of each caption's least likely entity; all have one."""
    parts = texts.parts()
    scores = score(images, Embeddings(parts["entities"][:, None]))
    lowest = scores.new_full((len(images), len(texts)), torch.inf)
    owner = parts["entity_owner"].expand(len(images), -1)
    return lowest.scatter_reduce(1, owner, scores, "amin")
