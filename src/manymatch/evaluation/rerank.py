"""The stage `rerank`: a caption is true of an image only if its least likely part is.

Pham et al., CORA, CVPR 2024, eq. 14.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from manymatch.errors import ConfigError
from manymatch.evaluation.blocks import Score
from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.outcome import Places, Wanted, outcome, write
from manymatch.evaluation.protocols import recall
from manymatch.evaluation.provenance import effort
from manymatch.evaluation.trained import embed_split
from manymatch.methods.base import Embeddings, Method
from manymatch.shards.read import samples as stored_samples

SUFFIX = "+rerank"
"""Behind a model's name, that of its results after re-ranking."""

BETAS = tuple(step / 20 for step in range(21))


def rerank(
    model: Path,
    shards: Path,
    relevance: Path,
    metrics: Path,
    provenance: Path,
    run: Path,
    *,
    captions: Path | None = None,
    split: str = "test",
    depth: int = 100,
    samples: int = 12,
) -> None:
    """Evaluate a trained model with `reranked` scores; beta is the best on the split `validation`.

    The arguments are those of `evaluate`.

    Raises:
        ConfigError: the method gives captions no entities.
        CheckpointError, DataError: as for `evaluate`.
    """
    started = time.monotonic()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    held_out = embed_split(model, shards, "validation", device)
    check_entities(held_out.method, held_out.found, "re-ranking")
    beta = best_beta(rsum_by_beta(held_out.method.score, held_out.found))

    trained = embed_split(model, shards, split, device)
    found, score = trained.found, reranked(trained.method.score, beta)
    dataset, stored = trained.index.dataset, partial(stored_samples, shards, split)
    wanted = Wanted(relevance, captions, depth, samples)
    came = outcome(found, score, None, dataset, stored, wanted)

    name = model.name + SUFFIX
    told = {"preset": name, "dataset": dataset, "split": split, "rerank_beta": beta}
    record = trained.origin() | told | effort(device, started)
    tag = f"{trained.recipe.method}-{name}"
    write(Places(metrics, provenance, run), came, tag, record)


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
