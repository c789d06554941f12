"""The stage `ensemble`: several trained models rank together, by the mean of their scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manymatch.errors import ConfigError, DataError
from manymatch.evaluation.blocks import Score, rows
from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.outcome import Places, Wanted, outcome, write
from manymatch.evaluation.provenance import effort
from manymatch.evaluation.trained import Trained, embed_split
from manymatch.methods.base import Embeddings
from manymatch.shards.read import samples as stored_samples

JOINED_BY = "+"
"""Between the members in an ensemble's name; in no preset's."""


def ensemble(
    members: Sequence[tuple[Path, Path]],
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
    """Evaluate the mean of the members' similarity matrices (EVALUATION: "Ensemble").

    No matrix is ever whole in memory: each block of scores is averaged and ranked. The scores are
    averaged as they are, so members should score on one scale: seeds or variants of one method.

    Args:
        members: of each the folder of the trained model and that of its shards.
        relevance, metrics, provenance, run, captions, split, depth, samples: as for `evaluate`.

    Raises:
        ConfigError: fewer than two members, or one twice.
        DataError: the members' shards do not hold the same images and captions.
        CheckpointError: a member is not a trained model, or its shards hold other features.
    """
    started = time.monotonic()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    _check_members([model for model, _ in members])
    trained = [embed_split(model, shards, split, device) for model, shards in members]
    _check_same_gallery(trained)
    together = _Together.of(trained)
    found = together.found
    dataset, stored = trained[0].index.dataset, partial(stored_samples, trained[0].shards, split)
    wanted = Wanted(relevance, captions, depth, samples)
    came = outcome(found, together.score, together.t2i_score, dataset, stored, wanted)
    record = _origin(trained) | {"dataset": dataset, "split": split} | effort(device, started)
    write(Places(metrics, provenance, run), came, run.name, record)


@dataclass(frozen=True)
class _Together:
    """The members as one: `found` has the numbers of the rows in place of embeddings, so that a
    block of it says which rows of every member are scored."""

    found: Embedded
    score: Score
    t2i_score: Score | None

    @classmethod
    def of(cls, members: Sequence[Trained]) -> _Together:
        found = members[0].found
        numbered = replace(found, images=_numbered(found.images), texts=_numbered(found.texts))
        ways = [(each.found, each.method.score, each.method.t2i_score) for each in members]
        i2t = _mean([(found, score) for found, score, _ in ways])
        t2i = _mean([(found, t2i_score or score) for found, score, t2i_score in ways])
        differ = any(t2i_score for *_, t2i_score in ways)
        return cls(numbered, i2t, t2i if differ else None)


def _numbered(embeddings: Embeddings) -> Embeddings:
    numbers = torch.arange(len(embeddings), device=embeddings.vectors.device)
    return Embeddings(numbers[:, None, None])


def _mean(members: Sequence[tuple[Embedded, Score]]) -> Score:
    """The mean of the members' scores, of numbered images and texts in unbroken runs."""

    def score(images: Embeddings, texts: Embeddings) -> Tensor:
        chosen = _run_of(images), _run_of(texts)
        found = [
            score(rows(embedded.images, chosen[0]), rows(embedded.texts, chosen[1]))
            for embedded, score in members
        ]
        return torch.stack(found).mean(0)

    return score


def _run_of(numbered: Embeddings) -> slice:
    first = int(numbered.vectors[0])
    return slice(first, first + len(numbered))


def _check_members(models: Sequence[Path]) -> None:
    if len(models) < 2:
        raise ConfigError("an ensemble needs two trained models or more")
    for model in models:
        if models.count(model) > 1:
            raise ConfigError(f"ensemble: '{model.name}' is named twice")


def _check_same_gallery(members: Sequence[Trained]) -> None:
    first = members[0]
    for other in members[1:]:
        for what, of in _GALLERY.items():
            if of(first.found) != of(other.found):
                raise DataError(
                    f"{other.shards}: not the same {what} in the same order as in "
                    f"{first.shards}; write the shards of both again"
                )


_GALLERY: dict[str, Callable[[Embedded], list[Any]]] = {
    "images": lambda found: found.image_ids,
    "captions": lambda found: found.caption_ids,
    "pairs": lambda found: found.owner.tolist(),
}


def _origin(members: Sequence[Trained]) -> dict[str, Any]:
    """As a single model's (`provenance.origin`), with that of each of the `members`."""
    origins = [member.origin() for member in members]
    settings = {found["setting"] for found in origins}
    return {
        "preset": JOINED_BY.join(found["preset"] for found in origins),
        "method": _joined(origins, "method"),
        "seed": _joined(origins, "seed"),
        "features": _joined(origins, "features"),
        "setting": settings.pop() if len(settings) == 1 else "small-scale",
        "parameters": sum(found["parameters"] for found in origins),
        "version": origins[0]["version"],
        "git_revision": origins[0]["git_revision"],
        "members": origins,
    }


def _joined(origins: Sequence[dict[str, Any]], key: str) -> Any:
    """What the members have in common, or all of it."""
    values = list(dict.fromkeys(found[key] for found in origins))
    return values[0] if len(values) == 1 else JOINED_BY.join(map(str, values))
