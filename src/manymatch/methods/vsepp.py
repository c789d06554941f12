"""VSE++: one vector an image, one vector a caption, hardest negatives.

Faghri et al., VSE++: Improving Visual-Semantic Embeddings with Hard Negatives, BMVC 2018.

The image is its pooled features through one linear layer, the caption the final state of a GRU
over its words; both are L2-normalised and compared by their cosine. The loss is the triplet loss
with the hardest negative of the batch; in the first epoch it sums over all negatives, since from
fresh weights the hardest ones alone lead to collapse.

Settings turn it into VSE-infinity (Chen et al., CVPR 2021: region encoder, GPO on both sides) or
give it another objective (InfoNCE), pooling and dropout.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from manymatch.config.recipe import Count, Positive, Probability
from manymatch.config.strict import Strict
from manymatch.datasets.vocabulary import Vocabulary
from manymatch.encoders.cnn import CNN, CNNSettings
from manymatch.encoders.regions import RegionEncoder
from manymatch.encoders.word_vectors import WordVectors, word_embedding
from manymatch.encoders.words import WordEncoder
from manymatch.layers.gru import Directions
from manymatch.losses.info_nce import info_nce
from manymatch.losses.triplet import Mining, triplet
from manymatch.methods.base import Embeddings, Method
from manymatch.pooling.by_name import PoolingName, pooling
from manymatch.shards.batch import Batch
from manymatch.similarities.cosine import cosine


class VSEPPSettings(Strict):
    """The defaults are the paper's, but that the GRU reads both ways."""

    size: Annotated[int, Field(ge=2, multiple_of=2)] = 1024
    image_encoder: Literal["linear", "regions"] = "linear"
    """`linear`: pool the features, then one layer; `regions`: encode each region, then pool."""
    image_pooling: PoolingName = "mean"
    cnn: CNNSettings | None = None
    """A network whose map is the features, which are then made of pixels and fine-tuned."""
    word_vectors: WordVectors = "learned"
    word_size: Count = 300
    """Of learned word vectors; GloVe's have their own size."""
    directions: Directions = "average"
    text_pooling: Literal["final"] | PoolingName = "final"
    """`final`: the GRU's final state; else the states of all words, pooled."""
    feature_dropout: Probability = 0.0
    word_dropout: Probability = 0.0
    embedding_dropout: Probability = 0.0
    """Of both embeddings before they are normalised."""
    objective: Literal["triplet", "info_nce"] = "triplet"
    margin: Positive = 0.2
    temperature: Positive = 0.05
    """Of `info_nce`."""


class VSEPP(Method):
    """VSE++ and, by its settings, VSE-infinity."""

    Settings = VSEPPSettings

    def __init__(self, settings: VSEPPSettings, vocabulary: Vocabulary, feature_width: int) -> None:
        super().__init__(settings, vocabulary, feature_width)
        self.settings = settings
        self.image = ImageTower(settings, feature_width)
        self.text = TextTower(settings, vocabulary)
        self.dropout = nn.Dropout(settings.embedding_dropout)
        self.mining: Mining = "hardest"

    def encode_images(self, batch: Batch) -> Embeddings:
        return self._embedded(self.image(batch.features, batch.region_mask))

    def encode_texts(self, batch: Batch) -> Embeddings:
        return self._embedded(self.text(batch.words, batch.word_mask))

    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        return cosine(images.vectors, texts.vectors)

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        scores = self.score(images, texts)
        if self.settings.objective == "info_nce":
            return {"info_nce": info_nce(scores, batch.owner, self.settings.temperature)}
        return {"triplet": triplet(scores, batch.owner, self.settings.margin, self.mining)}

    def start_epoch(self, epoch: int) -> None:
        self.mining = "all" if epoch == 0 else "hardest"

    def _embedded(self, vectors: Tensor) -> Embeddings:
        return Embeddings(functional.normalize(self.dropout(vectors).float(), dim=2))


class ImageTower(nn.Module):
    """`(n, R, F)`, `(n, R)` -> `(n, 1, D)`."""

    def __init__(self, settings: VSEPPSettings, feature_width: int) -> None:
        super().__init__()
        self.cnn = None if settings.cnn is None else CNN(settings.cnn)
        feature_width = feature_width if self.cnn is None else self.cnn.width
        self.pool_first = settings.image_encoder == "linear"
        self.pool = pooling(settings.image_pooling)
        if self.pool_first:
            layer = nn.Linear(feature_width, settings.size)
            self.encode: nn.Module = nn.Sequential(nn.Dropout(settings.feature_dropout), layer)
        else:
            self.encode = RegionEncoder(feature_width, settings.size, settings.feature_dropout)

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        if self.cnn is not None:
            features, mask = self.cnn(features, mask)
        if self.pool_first:
            return self.encode(self.pool(features, mask))
        return self.pool(self.encode(features, mask), mask)


class TextTower(nn.Module):
    """`(m, L)`, `(m, L)` -> `(m, 1, D)`."""

    def __init__(self, settings: VSEPPSettings, vocabulary: Vocabulary) -> None:
        super().__init__()
        words = word_embedding(settings.word_vectors, vocabulary, settings.word_size)
        self.read = WordEncoder(words, settings.size, settings.directions, settings.word_dropout)
        self.pool = None if settings.text_pooling == "final" else pooling(settings.text_pooling)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        read = self.read(words, mask)
        return read.final[:, None] if self.pool is None else self.pool(read.states, mask)
