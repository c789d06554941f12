"""The stage `ensemble`: several trained models rank by the mean of their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manymatch.config.layout import ResultFiles
from manymatch.evaluation.embedded_model import EmbeddedModel, embed_split
from manymatch.evaluation.split_results import EvaluationOptions, rank_split, write
from manymatch.methods.shared.method import Embeddings
from manymatch.model.blocks import Score
from manymatch.model.embed import Embedded
from manymatch.networks.device import pick_device
from manymatch.results.machine import Clock, record
from manymatch.shards.read import samples as samples_of
from manymatch.shards.sample import Sample
from manymatch.util.errors import ConfigError, DataError, repeated

JOINED_BY = "+"
"""Joins the members in an ensemble's name; no preset has this sign in its name."""


def ensemble(
    members: Sequence[tuple[Path, Path]],
    written: ResultFiles,
    options: EvaluationOptions,
) -> None:
    """Evaluate the mean of the members' similarity matrices.

    No matrix is ever whole in memory: each block of scores is averaged and ranked. The scores are
    not rescaled, so members should score on one scale: seeds or variants of one method.

    Args:
        members: the folder of the trained model and the folder of its shards, for each member.

    Raises:
        ConfigError: fewer than two members, or a member is named twice.
        DataError: the members' shards do not hold the same images and captions.
        CheckpointError: a member is not a trained model, or was trained on other features.
    """
    clock = Clock()
    if len(members) < 2:
        raise ConfigError("an ensemble needs two trained models or more")
    device = pick_device()
    models = Ensemble.embed(members, options.split, device)
    scores = models.score, models.t2i_score
    result = rank_split(models.embedded, *scores, models.dataset, models.stored, options)
    origin = models.origin(__name__) | {"dataset": models.dataset, "split": options.split}
    write(written, result, written.run.name, origin)
    record(written.machine, "ensemble", clock.usage(str(device)))


@dataclass(frozen=True)
class Ensemble:
    """One or several models on one split; `score` is the mean of their scores.

    `embedded` holds row numbers in place of embeddings: a block of `embedded` says which rows of
    every member are scored. If all members give entities, the numbers of the entities follow those
    of the captions, and `score` compares an image with an entity as with a caption.
    """

    members: Sequence[EmbeddedModel]
    split: str

    @classmethod
    def embed(
        cls, members: Sequence[tuple[Path, Path]], split: str, device: torch.device
    ) -> Ensemble:
        """Embed `split` with each member: the folder of the model and the folder of its shards.

        Raises:
            ConfigError: a member is named twice.
            DataError: the members' shards do not hold the same images and captions.
            CheckpointError: as for `embed_split`.
        """
        if twice := repeated(model.name for model, _ in members):
            raise ConfigError(f"ensemble: '{twice}' is named twice. Name each model once.")
        trained = [embed_split(model, shards, split, device) for model, shards in members]
        _check_same(trained, _gallery)
        return cls(trained, split)

    @property
    def dataset(self) -> str:
        return self.members[0].index.dataset

    @cached_property
    def embedded(self) -> Embedded:
        first = self.members[0].embedded
        texts = _numbered(first.texts)
        if all(member.embedded.texts.entities is not None for member in self.members):
            caption_index = first.texts.parts()["entity_caption"]
            numbers = torch.arange(len(caption_index), device=caption_index.device) + len(texts)
            texts = replace(texts, entities=numbers[:, None], entity_caption=caption_index)
        return replace(first, images=_numbered(first.images), texts=texts)

    @property
    def score(self) -> Score:
        return _mean([(member.embedded, member.method.score) for member in self.members])

    @property
    def t2i_score(self) -> Score | None:
        """None if every member uses one score for both directions."""
        methods = [member.method for member in self.members]
        if not any(method.t2i_score for method in methods):
            return None
        scores = [method.t2i_score or method.score for method in methods]
        return _mean([*zip([member.embedded for member in self.members], scores, strict=True)])

    def stored(self, rows: Sequence[int]) -> Iterator[Sample]:
        """Read images of the split from the first member's shards; see `shards.read.samples`."""
        first = self.members[0]
        return samples_of(first.shards, self.split, rows, first.method.shown_graph)

    def origin(self, stage: str) -> dict[str, Any]:
        """The origin of the results, for the provenance file; `stage` is the module that ranks."""
        origins = [member.origin(stage) for member in self.members]
        return origins[0] if len(origins) == 1 else _origin(origins)

    def check_same_entities(self) -> None:
        """Check that the captions of all members have the same entities (else a `DataError`)."""
        _check_same(self.members, _entities)


def _numbered(embeddings: Embeddings) -> Embeddings:
    numbers = torch.arange(len(embeddings), device=embeddings.vectors.device)
    return Embeddings(numbers[:, None, None])


def _mean(members: Sequence[tuple[Embedded, Score]]) -> Score:
    """The mean of the members' scores, for consecutive runs of numbered images and texts."""

    def score(images: Embeddings, texts: Embeddings) -> Tensor:
        image_rows, text_rows = _run_of(images), _run_of(texts)
        scores = [
            score(embedded.images.rows(image_rows), _texts(embedded.texts, text_rows))
            for embedded, score in members
        ]
        return torch.stack(scores).mean(0)

    return score


def _texts(texts: Embeddings, run: slice) -> Embeddings:
    """A run of the captions, or of the entities, whose numbers follow those of the captions."""
    count = len(texts)
    if run.start < count:
        return texts.rows(run)
    entities = texts.parts()["entities"][run.start - count : run.stop - count]
    return Embeddings(entities[:, None])


def _run_of(numbered: Embeddings) -> slice:
    first = int(numbered.vectors[0])
    return slice(first, first + len(numbered))


def _check_same(
    members: Sequence[EmbeddedModel], parts: Callable[[Embedded], dict[str, Any]]
) -> None:
    first = members[0]
    for other in members[1:]:
        expected = parts(first.embedded)
        for name, values in parts(other.embedded).items():
            if values != expected[name]:
                raise DataError(
                    f"{other.shards}: not the same {name} in the same order as in "
                    f"{first.shards}. Write the shards of both again."
                )


def _gallery(embedded: Embedded) -> dict[str, Any]:
    images, captions = embedded.image_ids, embedded.caption_ids
    return {"images": images, "captions": captions, "pairs": embedded.image_index.tolist()}


def _entities(embedded: Embedded) -> dict[str, Any]:
    parts = embedded.texts.parts()
    names = ("entity_caption", "entity_names", "entity_attributes")
    return {"entities": [parts[name].tolist() for name in names]}


def _origin(origins: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The origin of an ensemble, with the `origins` of its members (`EmbeddedModel.origin`)."""
    settings = {origin["setting"] for origin in origins}
    return {
        "preset": JOINED_BY.join(origin["preset"] for origin in origins),
        "method": _joined(origins, "method"),
        "seed": _joined(origins, "seed"),
        "features": _joined(origins, "features"),
        "setting": settings.pop() if len(settings) == 1 else "small-scale",
        "parameters": sum(origin["parameters"] for origin in origins),
        "version": origins[0]["version"],
        "members": origins,
    }


def _joined(origins: Sequence[dict[str, Any]], key: str) -> Any:
    """The value that the members share, or all their values joined."""
    values = list(dict.fromkeys(origin[key] for origin in origins))
    return values[0] if len(values) == 1 else JOINED_BY.join(map(str, values))
