"""VSE-infinity: all regions and all words, pooled by a learned operator.

Chen et al., Learning the Best Pooling Strategy for Visual Semantic Embedding, CVPR 2021.

Each region or grid cell is encoded by the sum of an MLP and a linear layer, each word by a GRU. The
generalised pooling operator (GPO) then learns for each modality the weight of the largest, second
largest, ... value of each dimension, which depends on the number of values. Scores are cosines. The
loss is VSE++'s, with all negatives in the first epoch and the hardest negatives from the second on.

Random-size augmentation, by which GPO sees sets of all sizes, is set by the preset
(`augmentation`: regions and words are dropped with probability 0.2).
"""

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from manymatch.batch.batch import Batch
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Probability
from manymatch.config.strict import Grouped
from manymatch.methods.shared.matching import Matching, MatchingSettings
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.networks.encoders.encoding import Encoding, check_local_sizes
from manymatch.networks.encoders.image import ImageEncoder, ImageSettings
from manymatch.networks.encoders.text import TextSettings, text_encoder
from manymatch.networks.pooling.global_pooling import GPO
from manymatch.similarities.vectors import unit


class VSEInfinitySettings(Grouped, MatchingSettings):
    """The defaults are the paper's."""

    size: Annotated[int, Field(ge=2, multiple_of=2)] = 1024
    image: ImageSettings = ImageSettings(encoder="regions")
    text: TextSettings = TextSettings(local="states")
    embedding_dropout: Probability = 0.0
    """Dropout of both embeddings, before their normalisation."""


class VSEInfinity(Method):
    """One vector for each sample, by generalised pooling."""

    title = "VSE∞"
    paper = "Chen et al., CVPR 2021"
    Settings = VSEInfinitySettings

    def __init__(
        self, settings: VSEInfinitySettings, vocabulary: AnyVocabulary, feature_width: int
    ) -> None:
        super().__init__(settings, vocabulary, feature_width)
        self.image = ImageEncoder(settings.image, feature_width, settings.size)
        self.text = text_encoder(settings.text, vocabulary, settings.size)
        check_local_sizes("vse_infinity", settings.size, self.image, self.text)
        self.pool_regions, self.pool_words = GPO(), GPO()
        self.dropout = nn.Dropout(settings.embedding_dropout)
        self.matching = Matching(settings)

    def encode_images(self, batch: Batch) -> Embeddings:
        return self._pooled(self.pool_regions, self.image(batch.features, batch.region_padding))

    def encode_texts(self, batch: Batch) -> Embeddings:
        return self._pooled(self.pool_words, self.text(batch.words, batch.word_padding))

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        scores = self.score(images, texts)
        return self.matching.terms(scores, batch.image_index, batch.left_out)

    def start_epoch(self, epoch: int) -> None:
        self.matching.start_epoch(epoch)

    def _pooled(self, pool: GPO, encoded: Encoding) -> Embeddings:
        pooled = self.dropout(pool(encoded.local, encoded.padding))
        return Embeddings(unit(pooled))
