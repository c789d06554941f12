"""The contract of a method, and the embeddings it exchanges with training and evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from manymatch.config.strict import Strict
from manymatch.encoders.text import TextSettings, text_vocabulary
from manymatch.shards.batch import Batch

if TYPE_CHECKING:
    from manymatch.text.vocabulary import Vocabulary
    from manymatch.text.wordpieces import AnyVocabulary


@dataclass(frozen=True)
class Embeddings:
    """`vectors (n, K, D)`, L2-normalised by the method that scores them so; and what else it has.

    `entities (V, D)` are a caption's parts (CORA), flat, with `entity_owner (V,)` = row of the
    sample, `entity_names (V,)` and `entity_attributes (V, A)` = `shards.batch.name_id` of the
    lemmatised name and of the attributes (0: none). `globals (n, D)`, `slots (n, K, D)` and
    `log_variance (n, D)` are other methods' parts. `attention (n, K, R)` says, out of training
    only, how much each element of a set looks at each region or word.
    `mask (n, K)` bool marks the real vectors of sets of unequal size (None: all are real). The
    score of the set methods counts these alone; their losses refuse sets with others.
    """

    vectors: Tensor
    log_variance: Tensor | None = None
    globals: Tensor | None = None
    slots: Tensor | None = None
    attention: Tensor | None = None
    entities: Tensor | None = None
    entity_owner: Tensor | None = None
    entity_names: Tensor | None = None
    entity_attributes: Tensor | None = None
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
    """One way to match images and captions: encoders, pooling, similarity and losses.

    Built by `manymatch.methods.build_method` as `Kind(settings, vocabulary, feature_width)`.
    """

    Settings: ClassVar[type[Strict]]
    """What a preset's `model:` may say."""

    reads_graphs: ClassVar[bool] = False
    """Whether captions are read as scene graphs, so that a new one must be parsed."""

    def __init__(self, settings: Any, vocabulary: AnyVocabulary, feature_width: int) -> None:
        super().__init__()

    @classmethod
    def vocabulary(cls, settings: Any, words: Vocabulary) -> AnyVocabulary:
        """What captions are numbered by: the `words` of the training captions, unless the text
        encoder that `settings.text` names reads a BERT's wordpieces."""
        chosen = getattr(settings, "text", None)
        return text_vocabulary(chosen, words) if isinstance(chosen, TextSettings) else words

    @abstractmethod
    def encode_images(self, batch: Batch) -> Embeddings:
        """`vectors (n, K, D)` of the batch's images."""

    @abstractmethod
    def encode_texts(self, batch: Batch) -> Embeddings:
        """`vectors (m, K, D)` of the batch's captions."""

    @abstractmethod
    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        """(n_images, n_texts); what retrieval ranks by. Callable on any block of either side."""

    def image_passes(self, batch: Batch) -> Tensor | None:
        """Maps of every pass `(T, n, K, R)` of methods that refine an image's set in T passes;
        the last is the `attention` of `encode_images`. None: there are no passes."""
        return None

    @property
    def t2i_score(self) -> Callable[[Embeddings, Embeddings], Tensor] | None:
        """What captions rank images by, where the two directions differ (then `score` is what
        images rank captions by): as `score`, (n_images, n_texts). None: `score` serves both."""
        return None

    @abstractmethod
    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        """Named, weighted terms; training minimises their sum.

        Sees the whole batch of all processes: training gathers every part of both `Embeddings`
        (row counts differ between processes) and `batch.owner`, adds to `owner` the number of
        images and to `entity_owner` the number of captions of the processes before, and passes a
        batch of which `owner` alone may be read.
        """

    def start_epoch(self, epoch: int) -> None:
        """Called before each training epoch (0-based), for losses that change with time."""

    def start_step(self, epochs: float) -> None:
        """Called before each training step with the epochs done so far (0.25: a quarter of the
        first), for losses that warm up."""
