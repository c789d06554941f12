"""What a probe measures: a trained model on a split, or the ranking of another model."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from manymatch.batch.collate import collate_captions
from manymatch.batch.numbering import CaptionEntry, Numbering
from manymatch.evaluation.embedded_model import EmbeddedModel, embed_split
from manymatch.evaluation.protocols.recall import recall
from manymatch.evaluation.ranking.ranks import Ranking, rank
from manymatch.methods.shared.method import Embeddings
from manymatch.model.embed import Embedded, inference
from manymatch.networks.device import pick_device
from manymatch.shards.read import samples
from manymatch.shards.sample import Sample

_CAPTIONS_PER_BATCH = 320


@dataclass(frozen=True)
class External:
    """The ranking of another model, and the split's captions with their scene graphs."""

    ranking: Ranking
    captions: list[CaptionEntry]


@dataclass(frozen=True)
class ProbedModel:
    """A trained model with its embeddings of `split`."""

    split: str
    device: torch.device
    trained: EmbeddedModel

    @classmethod
    def open(cls, model: Path, shards: Path, split: str) -> "ProbedModel":
        device = pick_device()
        return cls(split, device, embed_split(model, shards, split, device))

    @property
    def embedded(self) -> Embedded:
        return self.trained.embedded

    def identity(self) -> dict[str, Any]:
        """The model and split that a result belongs to."""
        origin = self.trained.origin(__name__)
        facts = ("preset", "method", "seed", "checkpoint_sha256")
        return {
            "dataset": self.trained.index.dataset,
            "split": self.split,
            **{key: origin[key] for key in facts},
        }

    @cached_property
    def ranking(self) -> Ranking:
        method = self.trained.method
        return rank(method.score, *self.embedded.gallery, t2i_score=method.t2i_score)

    @cached_property
    def captions(self) -> list[CaptionEntry]:
        """The captions of the split in the order of their embeddings, with `shown_graph`."""
        stored = samples(self.trained.shards, self.split, graphs=self.trained.method.shown_graph)
        return [caption for sample in stored for caption in sample.captions]

    def images(self, rows: Sequence[int]) -> Iterator[Sample]:
        """Read images of the split from the shards; `rows` are ascending."""
        return samples(self.trained.shards, self.split, rows)

    def held_out(self) -> Embedded:
        """The model's embeddings of the split `validation`."""
        return embed_split(
            self.trained.folder, self.trained.shards, "validation", self.device
        ).embedded

    def embed(self, captions: Iterable[CaptionEntry]) -> Embeddings:
        """Embed other captions with the model."""
        numbering = Numbering(self.trained.vocabulary)
        numbered = (numbering.caption(caption) for caption in captions)
        method = self.trained.method
        with inference(method, self.device):
            parts = []
            while some := list(islice(numbered, _CAPTIONS_PER_BATCH)):
                parts.append(method.encode_texts(collate_captions(some).to(self.device)))
            return Embeddings.join(parts)

    def rsum(self, texts: Embeddings) -> float:
        """The rsum of the split with `texts` in place of the captions."""
        method, embedded = self.trained.method, self.embedded
        parts = embedded.images, texts, embedded.image_index
        values = recall(method.score, *parts, t2i_score=method.t2i_score)
        rsum: float = values["rsum"]
        return rsum
