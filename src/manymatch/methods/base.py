"""The contract of a method, and the embeddings it exchanges with training and evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor, nn

from manymatch.shards.batch import Batch


@dataclass(frozen=True)
class Embeddings:
    """`vectors (n, K, D)`, L2-normalised by the method that scores them so; and what else it has.

    `entities (V, D)` are a caption's parts (CORA), flat, with `entity_owner (V,)` = row of the
    sample. `globals (n, D)`, `slots (n, K, D)` and `log_variance (n, D)` are other methods' parts.
    `mask (n, K)` marks the real vectors of sets of unequal size (None: all are real).
    """

    vectors: Tensor
    log_variance: Tensor | None = None
    globals: Tensor | None = None
    slots: Tensor | None = None
    entities: Tensor | None = None
    entity_owner: Tensor | None = None
    mask: Tensor | None = None

    def __len__(self) -> int:
        return self.vectors.shape[0]

    def to(self, device: torch.device | str) -> Embeddings:
        return replace(self, **{name: value.to(device) for name, value in self.parts().items()})

    def parts(self) -> dict[str, Tensor]:
        """The fields that are there, by name."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in pairs if value is not None}


class Method(nn.Module, ABC):
    """One way to match images and captions: encoders, pooling, similarity and losses."""

    @abstractmethod
    def encode_images(self, batch: Batch) -> Embeddings:
        """`vectors (n, K, D)` of the batch's images."""

    @abstractmethod
    def encode_texts(self, batch: Batch) -> Embeddings:
        """`vectors (m, K, D)` of the batch's captions."""

    @abstractmethod
    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        """(n_images, n_texts); what retrieval ranks by. Callable on any block of either side."""

    @abstractmethod
    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        """Named, weighted terms; training minimises their sum. Sees the whole (gathered) batch."""

    def start_epoch(self, epoch: int) -> None:  # noqa: B027  most methods have nothing to change
        """Called before each training epoch (0-based), for losses that warm up."""
