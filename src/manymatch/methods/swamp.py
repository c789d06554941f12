"""SwAMP: pairs that nobody labelled are given classes, each sample those of its partner.

Kim, SwAMP: Swapped Assignment of Multi-Modal Pairs for Cross-Modal Retrieval, AISTATS 2023.

The same p learned queries read image and caption (PAR): each query attends to the local features
(regions, or a bi-GRU's states of the words). H heads repeat this with queries of their own. All
H p results are concatenated and L2-normalised; that is the embedding. Scores are cosines.

A contrastive loss L_c treats every other pair as irrelevant. SwAMP adds a second loss, L_s, that
does not: the samples of the latest batches are assigned to classes, by the class probabilities and
such that all classes are used equally. Each sample learns to predict the classes of its partner in
the other modality. The loss is `L_c + lambda L_s`, L_c summed over the batch's pairs.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from manymatch.config.grouped import Grouped
from manymatch.config.preset import Count, Positive, Probability
from manymatch.encoders.encoding import Encoding
from manymatch.losses.swapped_labels import objective
from manymatch.methods.base import Embeddings, Method
from manymatch.methods.image_encoder import ImageSettings, image_encoder
from manymatch.methods.matching import Matching, MatchingSettings
from manymatch.methods.swapped_labels import LabelSettings, swapped_labels
from manymatch.methods.text_encoder import TextSettings, text_encoder
from manymatch.pooling.prototype_attention import PrototypeAttention
from manymatch.shards.batch import Batch
from manymatch.similarities.cosine import cosine
from manymatch.similarities.pairs import full_precision
from manymatch.text.wordpieces import AnyVocabulary


class SwAMPSettings(Grouped, MatchingSettings, LabelSettings):
    """The defaults are the paper's for Flickr30K. `weight: 0` is its contrastive twin."""

    size: Annotated[int, Field(ge=2, multiple_of=2)] = 1024
    """D, of local features; an embedding has `heads * n_prototypes * size` dimensions."""
    image: ImageSettings = ImageSettings(encoder="linear")
    text: TextSettings = TextSettings(word_vectors="learned", local="states")
    n_prototypes: Count = 20
    """p, the queries of PAR (the prototypes of classes are `n_classes`)."""
    heads: Count = 1
    """H, how often PAR is repeated with other queries; the results are concatenated."""
    attention_temperature: Positive = 0.5
    embedding_dropout: Probability = 0.0
    """Of both embeddings before they are normalised."""
    all_negatives_epochs: Annotated[int, Field(ge=0)] = 0


class SwAMP(Method):
    """Prototype attention, a contrastive loss, and swapped class labels."""

    Settings = SwAMPSettings

    def __init__(
        self, settings: SwAMPSettings, vocabulary: AnyVocabulary, feature_width: int
    ) -> None:
        super().__init__(settings, vocabulary, feature_width)
        size, queries = settings.size, settings.heads * settings.n_prototypes
        self.image = image_encoder(settings.image, feature_width, size)
        self.text = text_encoder(settings.text, vocabulary, size)
        self.read = PrototypeAttention(size, queries, settings.attention_temperature)
        self.dropout = nn.Dropout(settings.embedding_dropout)
        self.matching = Matching(settings)
        self.labels = swapped_labels(settings, queries * size)

    def encode_images(self, batch: Batch) -> Embeddings:
        return self._embedded(self.image(batch.features, batch.region_mask))

    def encode_texts(self, batch: Batch) -> Embeddings:
        return self._embedded(self.text(batch.words, batch.word_mask))

    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        return cosine(images.vectors, texts.vectors)

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        contrastive = self.matching.terms(self.score(images, texts), batch.owner)
        # A pair is a caption with its image: an image of five captions is in five pairs.
        pairs = images.vectors[batch.owner, 0], texts.vectors[:, 0]
        return objective(contrastive, self.labels, *pairs)

    def start_epoch(self, epoch: int) -> None:
        self.matching.start_epoch(epoch)

    def _embedded(self, encoded: Encoding) -> Embeddings:
        read = self.dropout(self.read(encoded.local, encoded.mask)).flatten(1)
        return Embeddings(functional.normalize(full_precision(read), dim=1)[:, None])
