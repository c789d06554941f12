"""SwAMP: pairs that nobody labelled are given classes, each sample those of its partner.

Kim, SwAMP: Swapped Assignment of Multi-Modal Pairs for Cross-Modal Retrieval, AISTATS 2023.

Image and caption are read by the same p learned queries (PAR): each attends to the local features
(regions, or a bi-GRU's states of the words), and what they find, side by side and L2-normalised,
is the embedding. Scores are cosines.

A contrastive loss takes every other pair for irrelevant. SwAMP adds a second loss, L_s, that does
not: samples of the latest batches are assigned to classes, as likely by prototypes and equally
many to each class, and every sample learns to be predicted the classes of its partner in the
other modality.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from manymatch.config.grouped import Grouped
from manymatch.config.recipe import Count, NonNegative, Positive, Probability
from manymatch.datasets.wordpieces import AnyVocabulary
from manymatch.encoders.encoding import Encoding
from manymatch.encoders.image import ImageSettings, image_encoder
from manymatch.encoders.text import TextSettings, text_encoder
from manymatch.losses.swapped_labels import LabelSettings, SwappedLabels
from manymatch.methods.base import Embeddings, Method
from manymatch.methods.matching import Matching, MatchingSettings
from manymatch.pooling.prototype_attention import PrototypeAttention
from manymatch.shards.batch import Batch
from manymatch.similarities.cosine import cosine
from manymatch.similarities.pairs import full_precision


class SwAMPSettings(Grouped, MatchingSettings, LabelSettings):
    """The defaults are the paper's for Flickr30K. `weight: 0` is its contrastive twin."""

    size: Annotated[int, Field(ge=2, multiple_of=2)] = 1024
    """Of local features; an embedding has `n_prototypes` times as many dimensions."""
    image: ImageSettings = ImageSettings(encoder="linear")
    text: TextSettings = TextSettings(word_vectors="learned", local="states")
    n_prototypes: Count = 20
    """p, the queries of PAR (the prototypes of classes are `n_classes`)."""
    heads: Count = 1
    attention_temperature: Positive = 0.5
    embedding_dropout: Probability = 0.0
    """Of both embeddings before they are normalised."""
    weight: NonNegative = 1.0
    """Of L_s; the paper's lambda."""


class SwAMP(Method):
    """Prototype attention, a contrastive loss, and swapped class labels."""

    Settings = SwAMPSettings

    def __init__(
        self, settings: SwAMPSettings, vocabulary: AnyVocabulary, feature_width: int
    ) -> None:
        super().__init__(settings, vocabulary, feature_width)
        size, queries = settings.size, settings.n_prototypes
        self.weight = settings.weight
        self.image = image_encoder(settings.image, feature_width, size)
        self.text = text_encoder(settings.text, vocabulary, size)
        self.read = PrototypeAttention(
            size, queries, settings.heads, settings.attention_temperature
        )
        self.dropout = nn.Dropout(settings.embedding_dropout)
        self.matching = Matching(settings)
        self.labels = SwappedLabels(settings, queries * size) if settings.weight else None

    def encode_images(self, batch: Batch) -> Embeddings:
        return self._embedded(self.image(batch.features, batch.region_mask))

    def encode_texts(self, batch: Batch) -> Embeddings:
        return self._embedded(self.text(batch.words, batch.word_mask))

    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        return cosine(images.vectors, texts.vectors)

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        terms = self.matching.terms(self.score(images, texts), batch.owner)
        if self.labels is not None:
            # A pair is a caption with its image: an image of five captions is in five pairs.
            pairs = images.vectors[batch.owner, 0], texts.vectors[:, 0]
            terms["swapped"] = self.weight * self.labels(*pairs)
        return terms

    def _embedded(self, encoded: Encoding) -> Embeddings:
        read = self.dropout(self.read(encoded.local, encoded.mask)).flatten(1)
        return Embeddings(functional.normalize(full_precision(read), dim=1)[:, None])
