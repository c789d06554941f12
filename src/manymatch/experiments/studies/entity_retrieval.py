"""Image to entity: which of all things that the split's captions name are in an image.

Pham et al., CORA, CVPR 2024.
"""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manymatch.evaluation.protocols.recall import relevant_ranks
from manymatch.evaluation.ranking.metrics import CUTS, multi_match_metrics, recall_metrics
from manymatch.evaluation.samples import drawn_queries
from manymatch.experiments.studies.findings import Cell, Findings, Table, shown
from manymatch.experiments.studies.subject import Subject
from manymatch.methods.base import Embeddings
from manymatch.scene_graphs.graph import SceneGraph
from manymatch.shards.sample import CaptionEntry

Entity = tuple[str, frozenset[str]]
"""An object's lemmatised name and its attributes."""

Words = tuple[str, tuple[str, ...]]
"""An object and its attributes as a caption puts them."""

_SAMPLES, _BEST = 6, 10


def entity_retrieval(subject: Subject) -> Findings:
    """R@K and mAP of the entities true of each image, ranked among all entities of the split.

    Methods without entities get each as a caption of its own, attributes before the object.
    """
    vocabulary = EntityVocabulary.of(caption.graph for caption in subject.captions)
    pairs = true_pairs(vocabulary, subject.captions, subject.found.owner)
    embedded = _entities(subject.embed(vocabulary.captions))
    score, images = subject.trained.method.score, subject.found.images
    parts = list(relevant_ranks(score, images, embedded, pairs))
    recalls = recall_metrics(torch.cat([part.ranks[:, 0] for part in parts]))
    whole = multi_match_metrics(parts)
    numbers = [recalls[f"r{cut}"] for cut in CUTS] + [whole["map_at_r"], whole["r_precision"]]
    row: list[Cell] = [len(vocabulary.captions), shown(len(pairs) / len(images))]
    columns = ["Entities", "True of an image", *(f"R@{cut}" for cut in CUTS), "mAP@R", "R-P"]
    return Findings(
        "Image to entity",
        "Each image ranks all entities (an object with its attributes) of the split's captions. "
        "True of it are those of its own captions, also with fewer of their attributes.",
        [Table("Images", columns, [row + [shown(number) for number in numbers]])],
        _samples(subject, vocabulary, embedded, pairs),
    )


@dataclass(frozen=True)
class EntityVocabulary:
    """Distinct entities, each with a caption that says nothing else."""

    entities: list[Entity]
    captions: list[CaptionEntry]

    @classmethod
    def of(cls, graphs: Iterable[SceneGraph]) -> EntityVocabulary:
        """Those of `graphs`, each in the words that say it most often, in order of the alphabet."""
        said: dict[Entity, Counter[Words]] = defaultdict(Counter)
        for graph in graphs:
            for object_, name, attributes in zip(
                graph.objects, graph.names, graph.attributes, strict=True
            ):
                said[name, frozenset(attributes)][object_, attributes] += 1
        entities = sorted(said, key=lambda entity: (entity[0], sorted(entity[1])))
        captions = [
            _caption(number, name, *_most_common(said[name, attributes]))
            for number, (name, attributes) in enumerate(entities)
        ]
        return cls(entities, captions)

    def implied(self) -> dict[Entity, list[int]]:
        """Of each entity the rows of those that are true where it is: of the same name, with no
        other attributes."""
        named = defaultdict(list)
        for row, (name, attributes) in enumerate(self.entities):
            named[name].append((row, attributes))
        return {
            (name, attributes): [row for row, fewer in named[name] if fewer <= attributes]
            for name, attributes in self.entities
        }


def _most_common(said: Counter[Words]) -> Words:
    """Of equally common ones the first by the alphabet."""
    return min(said, key=lambda words: (-said[words], words))


def _caption(number: int, name: str, object_: str, attributes: tuple[str, ...]) -> CaptionEntry:
    graph = SceneGraph((object_,), (name,), (attributes,), ())
    return CaptionEntry(str(number), " ".join([*attributes, object_]), graph)


def true_pairs(
    vocabulary: EntityVocabulary, captions: Sequence[CaptionEntry], owner: Tensor
) -> Tensor:
    """`(p, 2)`: image and entity, for every entity that the image's captions imply."""
    implied = vocabulary.implied()
    pairs = {
        (image, row)
        for image, caption in zip(owner.tolist(), captions, strict=True)
        for name, attributes in zip(caption.graph.names, caption.graph.attributes, strict=True)
        for row in implied[name, frozenset(attributes)]
    }
    return torch.tensor(sorted(pairs))


def _entities(texts: Embeddings) -> Embeddings:
    """What stands for the one entity of each caption."""
    return texts if texts.entities is None else Embeddings(texts.entities[:, None])


def _samples(
    subject: Subject, vocabulary: EntityVocabulary, embedded: Embeddings, pairs: Tensor
) -> list[dict[str, Any]]:
    chosen = drawn_queries(len(subject.found.images), 0, _SAMPLES).images
    true = {(image, entity) for image, entity in pairs.tolist()}

    def best(row: int) -> list[dict[str, Any]]:
        image = subject.found.images.rows(slice(row, row + 1))
        scores = subject.trained.method.score(image, embedded)[0]
        top, entities = scores.topk(min(_BEST, len(scores)))
        return [
            {
                "entity": vocabulary.captions[entity].text,
                "score": round(score, 4),
                "true": (row, entity) in true,
            }
            for score, entity in zip(top.tolist(), entities.tolist(), strict=True)
        ]

    return [
        {
            "image_id": image.image_id,
            "thumbnail": base64.b64encode(image.thumbnail).decode() if image.thumbnail else None,
            "captions": [caption.text for caption in image.captions],
            "entities": best(row),
        }
        for row, image in zip(chosen, subject.images(chosen), strict=True)
    ]
