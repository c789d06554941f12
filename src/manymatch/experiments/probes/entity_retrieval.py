"""Image to entity: which of the things that the captions of a split name are in an image.

Pham et al., CORA, CVPR 2024.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from manymatch.batch.numbering import CaptionEntry
from manymatch.batch.scene_graph import SceneGraph
from manymatch.evaluation.protocols.recall import relevant_ranks
from manymatch.evaluation.ranking.metrics import CUTS, multi_match_metrics, recall_metrics, rounded
from manymatch.evaluation.samples import draw_queries, thumbnail
from manymatch.experiments.probes.probed_model import ProbedModel
from manymatch.methods.shared.method import Embeddings
from manymatch.results.probes import Cell, EntityQuery, Probe, ProbeTable, RetrievedEntity

Entity = tuple[str, frozenset[str]]
"""An object's lemmatised name and its attributes."""

Words = tuple[str, tuple[str, ...]]
"""An object and its attributes in the words of a caption."""

_SAMPLES, _BEST = 6, 10


def entity_retrieval(probed: ProbedModel) -> Probe[EntityQuery]:
    """R@K and mAP of the entities true of each image, ranked among all entities of the split.

    For methods without entities each entity is a caption, with the attributes before the object.
    """
    vocabulary = EntityVocabulary.of(caption.graph for caption in probed.captions)
    pairs = true_pairs(vocabulary, probed.captions, probed.embedded.image_index)
    embedded = probed.embed(vocabulary.captions)
    if embedded.entities is not None:  # the only entity of each caption
        embedded = Embeddings(embedded.entities[:, None])
    score, images = probed.trained.method.score, probed.embedded.images
    parts = list(relevant_ranks(score, images, embedded, pairs))
    recalls = recall_metrics(torch.cat([part.ranks[:, 0] for part in parts]))
    multi = multi_match_metrics(parts)
    numbers = [recalls[f"r{cut}"] for cut in CUTS] + [multi["map_at_r"], multi["r_precision"]]
    row: list[Cell] = [len(vocabulary.captions), rounded(len(pairs) / len(images))]
    columns = ["Entities", "True of an image", *(f"R@{cut}" for cut in CUTS), "mAP@R", "R-P"]
    return Probe[EntityQuery](
        title="Image to entity",
        about="Each image ranks all entities (an object with its attributes) of the split's "
        "captions. True of it are those of its own captions, also with fewer of their attributes.",
        tables=[ProbeTable(title="Images", columns=columns, rows=[[*row, *map(rounded, numbers)]])],
        samples=_samples(probed, vocabulary, embedded, pairs),
    )


@dataclass(frozen=True)
class EntityVocabulary:
    """Distinct entities, each with a caption of only this entity."""

    entities: list[Entity]
    captions: list[CaptionEntry]

    @classmethod
    def of(cls, graphs: Iterable[SceneGraph]) -> "EntityVocabulary":
        """The entities of `graphs` in alphabetical order, each in its most frequent words."""
        words: dict[Entity, Counter[Words]] = defaultdict(Counter)
        for graph in graphs:
            for object_, name, attributes in zip(
                graph.objects, graph.names, graph.attributes, strict=True
            ):
                words[name, frozenset(attributes)][object_, attributes] += 1
        entities = sorted(words, key=lambda entity: (entity[0], sorted(entity[1])))
        captions = []
        for number, entity in enumerate(entities):
            # Of equally frequent words the first in alphabetical order.
            ranked = sorted(words[entity].items(), key=lambda pair: (-pair[1], pair[0]))
            object_, own = ranked[0][0]
            graph = SceneGraph((object_,), (entity[0],), (own,), ())
            captions.append(CaptionEntry(str(number), " ".join([*own, object_]), graph))
        return cls(entities, captions)

    def implied(self) -> dict[Entity, list[int]]:
        """For each entity the rows of the entities that it implies: those of the same name
        without other attributes."""
        named = defaultdict(list)
        for row, (name, attributes) in enumerate(self.entities):
            named[name].append((row, attributes))
        return {
            (name, attributes): [row for row, fewer in named[name] if fewer <= attributes]
            for name, attributes in self.entities
        }


def true_pairs(
    vocabulary: EntityVocabulary, captions: Sequence[CaptionEntry], image_index: Tensor
) -> Tensor:
    """`(p, 2)`: image and entity, for every entity that the image's captions imply."""
    implied = vocabulary.implied()
    pairs = {
        (image, row)
        for image, caption in zip(image_index.tolist(), captions, strict=True)
        for name, attributes in zip(caption.graph.names, caption.graph.attributes, strict=True)
        for row in implied[name, frozenset(attributes)]
    }
    return torch.tensor(sorted(pairs))


def _samples(
    probed: ProbedModel, vocabulary: EntityVocabulary, embedded: Embeddings, pairs: Tensor
) -> list[EntityQuery]:
    sampled = draw_queries(len(probed.embedded.images), 0, _SAMPLES).images
    true = {(image, entity) for image, entity in pairs.tolist()}

    def best(row: int) -> list[RetrievedEntity]:
        image = probed.embedded.images.rows(slice(row, row + 1))
        scores = probed.trained.method.score(image, embedded)[0]
        top, entities = scores.topk(min(_BEST, len(scores)))
        return [
            RetrievedEntity(
                entity=vocabulary.captions[entity].text,
                score=round(score, 4),
                true=(row, entity) in true,
            )
            for score, entity in zip(top.tolist(), entities.tolist(), strict=True)
        ]

    return [
        EntityQuery(
            image_id=image.image_id,
            thumbnail=thumbnail(image),
            captions=[caption.text for caption in image.captions],
            entities=best(row),
        )
        for row, image in zip(sampled, probed.images(sampled), strict=True)
    ]
