"""VSE++: one vector an image, one vector a caption, hardest negatives.

Faghri et al., VSE++: Improving Visual-Semantic Embeddings with Hard Negatives, BMVC 2018.

An image is embedded by one linear layer over its pooled features, a caption by the final state of a
GRU over its words. Both vectors are L2-normalised and compared by their cosine. The loss is the
triplet loss with the hardest negative of the batch. In the first epoch the loss sums over all
negatives, because the hardest negatives alone make fresh weights collapse.

The settings also allow another objective (InfoNCE), other poolings and dropout.
"""

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from manymatch.batch.batch import Batch
from manymatch.batch.padding import PaddedRows, PaddedSequences
from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.preset import Count, Probability
from manymatch.methods.shared.matching import Matching, MatchingSettings
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.networks.encoders.image import PixelNetworks, pixel_networks
from manymatch.networks.encoders.text import TextPooling, WordEncoder
from manymatch.networks.encoders.word_vectors import WordVectors, word_embedding
from manymatch.networks.layers.gru import Directions
from manymatch.networks.pooling.global_pooling import PoolingName, pooling
from manymatch.similarities.vectors import unit


class VSEPPSettings(MatchingSettings, PixelNetworks):
    """The defaults are the paper's, except that the GRU reads in both directions."""

    size: Annotated[int, Field(ge=2, multiple_of=2)] = 1024
    image_pooling: PoolingName = "mean"
    word_vectors: WordVectors = "learned"
    word_size: Count = 300
    """Size of learned word vectors; GloVe's vectors have their own size."""
    directions: Directions = "average"
    text_pooling: TextPooling = "final"
    """`final`: the GRU's final state; otherwise a pooling of the states of all words."""
    feature_dropout: Probability = 0.0
    word_dropout: Probability = 0.0
    embedding_dropout: Probability = 0.0
    """Dropout of both embeddings, before their normalisation."""


class VSEPP(Method):
    """One vector for each sample, trained with the hardest negatives."""

    title = "VSE++"
    paper = "Faghri et al., BMVC 2018"
    Settings = VSEPPSettings

    def __init__(self, settings: VSEPPSettings, vocabulary: Vocabulary, feature_width: int) -> None:
        super().__init__(settings, vocabulary, feature_width)
        self.image = ImageTower(settings, feature_width)
        self.text = TextTower(settings, vocabulary)
        self.dropout = nn.Dropout(settings.embedding_dropout)
        self.matching = Matching(settings)

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        scores = self.score(images, texts)
        return self.matching.terms(scores, batch.image_index, batch.left_out)

    def start_epoch(self, epoch: int) -> None:
        self.matching.start_epoch(epoch)

    def embedded(self, vectors: Tensor) -> Embeddings:
        return Embeddings(unit(self.dropout(vectors)))


class ImageTower(nn.Module):
    """Features `(n, R, F)` and their padding -> `(n, 1, D)`."""

    def __init__(self, settings: VSEPPSettings, feature_width: int) -> None:
        super().__init__()
        self.cnn, self.backbone = pixel_networks(settings)
        networks = (self.cnn, self.backbone)
        width = next((one.width for one in networks if one is not None), feature_width)
        self.pool = pooling(settings.image_pooling)
        layer = nn.Linear(width, settings.size)
        self.encode = nn.Sequential(nn.Dropout(settings.feature_dropout), layer)

    def forward(self, features: Tensor, padding: PaddedRows) -> Tensor:
        for network in (self.cnn, self.backbone):
            if network is not None:
                features, padding = network(features)
        return self.encode(self.pool(features, padding))


class TextTower(nn.Module):
    """Word ids `(m, L)` and their padding -> `(m, 1, D)`."""

    def __init__(self, settings: VSEPPSettings, vocabulary: Vocabulary) -> None:
        super().__init__()
        words = word_embedding(settings.word_vectors, vocabulary, settings.word_size)
        self.read = WordEncoder(words, settings.size, settings.directions, settings.word_dropout)
        self.pool = None if settings.text_pooling == "final" else pooling(settings.text_pooling)

    def forward(self, words: Tensor, padding: PaddedSequences) -> Tensor:
        read = self.read(words, padding)
        return read.final[:, None] if self.pool is None else self.pool(read.states, padding)
