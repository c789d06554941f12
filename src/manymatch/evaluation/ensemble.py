"""The stage `ensemble`: several trained models rank together, by the mean of their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manymatch.config.layout import ResultFiles
from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.outcome import Wanted, outcome, write
from manymatch.evaluation.ranking.blocks import Score, rows
from manymatch.evaluation.trained import Trained, embed_split
from manymatch.methods.base import Embeddings
from manymatch.shards.read import samples as samples_of
from manymatch.shards.sample import Sample
from manymatch.system.device import pick_device
from manymatch.system.errors import ConfigError, DataError
from manymatch.system.machine import Clock, record

JOINED_BY = "+"
"""Between the members in an ensemble's name; in no preset's."""


def ensemble(
    members: Sequence[tuple[Path, Path]],
    relevance: Path,
    written: ResultFiles,
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
        relevance, written, captions, split, depth, samples: as for `evaluate`.

    Raises:
        ConfigError: fewer than two members, or one twice.
        DataError: the members' shards do not hold the same images and captions.
        CheckpointError: a member is not a trained model, or its shards hold other features.
    """
    clock = Clock()
    if len(members) < 2:
        raise ConfigError("an ensemble needs two trained models or more")
    device = pick_device()
    together = Together.embed(members, split, device)
    found, dataset = together.found, together.dataset
    wanted = Wanted(relevance, captions, depth, samples)
    ways = together.score, together.t2i_score
    result = outcome(found, *ways, dataset, together.stored, wanted)
    origin = together.origin(__name__) | {"dataset": dataset, "split": split}
    write(written, result, written.run.name, origin)
    record(written.machine, "ensemble", clock.usage(str(device)))


@dataclass(frozen=True)
class Together:
    """One or several models on one split, which score by the mean of their scores.

    `found` holds row numbers in place of embeddings, so that a block of `found` says which rows of
    every member are scored. If all members give entities, the entities are numbered on behind the
    captions: `score` rates an image against an entity as against a caption.
    """

    members: Sequence[Trained]
    split: str

    @classmethod
    def embed(
        cls, members: Sequence[tuple[Path, Path]], split: str, device: torch.device
    ) -> Together:
        """Embed `split` with each member: the folder of its model and that of its shards.

        Raises:
            ConfigError: a member is named twice.
            DataError: the members' shards do not hold the same images and captions.
            CheckpointError: as for `embed_split`.
        """
        _check_named_once([model for model, _ in members])
        trained = [embed_split(model, shards, split, device) for model, shards in members]
        _check_same(trained, _GALLERY)
        return cls(trained, split)

    @property
    def dataset(self) -> str:
        return self.members[0].index.dataset

    @cached_property
    def found(self) -> Embedded:
        first = self.members[0].found
        texts = _numbered(first.texts)
        if all(each.found.texts.entities is not None for each in self.members):
            owner = first.texts.parts()["entity_owner"]
            behind = torch.arange(len(owner), device=owner.device) + len(texts)
            texts = replace(texts, entities=behind[:, None], entity_owner=owner)
        return replace(first, images=_numbered(first.images), texts=texts)

    @property
    def score(self) -> Score:
        return _mean([(each.found, each.method.score) for each in self.members])

    @property
    def t2i_score(self) -> Score | None:
        """None if every member ranks both ways by one score."""
        ways = [(each.found, each.method.t2i_score, each.method.score) for each in self.members]
        if not any(t2i_score for _, t2i_score, _ in ways):
            return None
        return _mean([(found, t2i_score or score) for found, t2i_score, score in ways])

    def stored(self, rows: Sequence[int]) -> Iterator[Sample]:
        """Images of the split as the first member's shards hold them; see `shards.read.samples`."""
        return samples_of(self.members[0].shards, self.split, rows)

    def origin(self, stage: str) -> dict[str, Any]:
        """The origin of the results, for the provenance file; `stage` is the module that ranks."""
        origins = [member.origin(stage) for member in self.members]
        return origins[0] if len(origins) == 1 else _origin(origins)

    def check_same_entities(self) -> None:
        """Refuse members whose captions do not have the same entities (a `DataError`)."""
        _check_same(self.members, _ENTITIES)


def _numbered(embeddings: Embeddings) -> Embeddings:
    numbers = torch.arange(len(embeddings), device=embeddings.vectors.device)
    return Embeddings(numbers[:, None, None])


def _mean(members: Sequence[tuple[Embedded, Score]]) -> Score:
    """The mean of the members' scores, of numbered images and texts in unbroken runs."""

    def score(images: Embeddings, texts: Embeddings) -> Tensor:
        chosen = _run_of(images), _run_of(texts)
        found = [
            score(rows(embedded.images, chosen[0]), _texts(embedded.texts, chosen[1]))
            for embedded, score in members
        ]
        return torch.stack(found).mean(0)

    return score


def _texts(texts: Embeddings, chosen: slice) -> Embeddings:
    """A run of the captions, or of the entities, whose numbers follow those of the captions."""
    count = len(texts)
    if chosen.start < count:
        return rows(texts, chosen)
    entities = texts.parts()["entities"][chosen.start - count : chosen.stop - count]
    return Embeddings(entities[:, None])


def _run_of(numbered: Embeddings) -> slice:
    first = int(numbered.vectors[0])
    return slice(first, first + len(numbered))


def _check_named_once(models: Sequence[Path]) -> None:
    for model in models:
        if models.count(model) > 1:
            raise ConfigError(f"ensemble: '{model.name}' is named twice")


def _check_same(members: Sequence[Trained], parts: Mapping[str, Callable[[Embedded], Any]]) -> None:
    first = members[0]
    for other in members[1:]:
        for what, of in parts.items():
            if of(first.found) != of(other.found):
                raise DataError(
                    f"{other.shards}: not the same {what} in the same order as in "
                    f"{first.shards}; write the shards of both again"
                )


_GALLERY: dict[str, Callable[[Embedded], Any]] = {
    "images": lambda found: found.image_ids,
    "captions": lambda found: found.caption_ids,
    "pairs": lambda found: found.owner.tolist(),
}
_ENTITIES: dict[str, Callable[[Embedded], Any]] = {
    "entities": lambda found: [
        found.texts.parts()[part].tolist()
        for part in ("entity_owner", "entity_names", "entity_attributes")
    ],
}


def _origin(origins: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The origin of an ensemble, with the `origins` of its members (`provenance.origin`)."""
    settings = {found["setting"] for found in origins}
    return {
        "preset": JOINED_BY.join(found["preset"] for found in origins),
        "method": _joined(origins, "method"),
        "seed": _joined(origins, "seed"),
        "features": _joined(origins, "features"),
        "setting": settings.pop() if len(settings) == 1 else "small-scale",
        "parameters": sum(found["parameters"] for found in origins),
        "version": origins[0]["version"],
        "members": origins,
    }


def _joined(origins: Sequence[dict[str, Any]], key: str) -> Any:
    """What the members have in common, or all of it."""
    values = list(dict.fromkeys(found[key] for found in origins))
    return values[0] if len(values) == 1 else JOINED_BY.join(map(str, values))
