"""SwAMP on videos and text: gated embeddings of published features, swapped class labels.

Kim, SwAMP: Swapped Assignment of Multi-Modal Pairs for Cross-Modal Retrieval, AISTATS 2023, whose
model and contrastive loss for this task are those of HowTo100M (Miech et al., ICCV 2019).

The features of a clip are one vector of 4,096 numbers. The features of a caption are the maximum
over its words, and a vector of zeros, of `relu(linear(vector))`. The vectors of the words are those
of word2vec and are not trained. A gated embedding unit turns either into the embedding. Scores are
cosines. The contrastive loss compares every pair with all other pairs of the batch. The second loss
is SwAMP's, as in `swamp.py`.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import pad

from manymatch.batch.batch import Batch
from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Count, NonNegative, Positive
from manymatch.losses.pseudo_labels import LabelSettings, Reduction, objective
from manymatch.losses.triplets import triplet
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.networks.encoders.word_vectors import (
    WordTable,
    WordVectors,
    fixed_embedding,
    word_embedding,
)
from manymatch.networks.pooling.global_pooling import MaxPooling
from manymatch.similarities.vectors import unit


class SwAMPVideoSettings(LabelSettings):
    """The defaults are the paper's for YouCook2 without pre-training. `weight: 0` trains with the
    contrastive loss alone."""

    size: Count = 4096
    """Size of captions before the gated unit, and of both embeddings."""
    word_vectors: Literal["word2vec"] | WordVectors = "word2vec"
    """Vectors of word2vec are fixed, also those of words that no training caption has, and words
    without a vector are ignored; other vectors are trained."""
    word_size: Count = 300
    word2vec_file: str | None = None
    """A binary file such as GoogleNews-vectors-negative300.bin."""
    margin: Positive = 0.1
    negatives: Literal["mean", "hardest"] = "mean"
    """`mean`: in each direction the mean hinge over all wrong pairs of the batch (HowTo100M).
    `hardest`: the largest hinge alone."""
    contrastive: Reduction = "sum"
    """L_c is the sum over the pairs of the batch, as in eq. 1, or the mean, as in HowTo100M's
    code."""
    n_classes: Count = 500
    queue: Annotated[int, Field(ge=0)] = 2048
    tau: Positive = 0.25
    weight: NonNegative = 0.25


class SwAMPVideo(Method):
    """Gated embeddings, a contrastive loss, and swapped class labels."""

    title = "SwAMP"
    paper = "Kim, AISTATS 2023"
    Settings = SwAMPVideoSettings

    def __init__(
        self, settings: SwAMPVideoSettings, vocabulary: AnyVocabulary, feature_width: int
    ) -> None:
        super().__init__(settings, vocabulary, feature_width)
        self.settings = settings
        self.pool = MaxPooling()
        if settings.word_vectors == "word2vec":
            words = fixed_embedding(vocabulary, settings.word_size, settings.word2vec_file)
        else:
            words = word_embedding(settings.word_vectors, vocabulary, settings.word_size)
        self.text = WordMaximum(words, settings.size)
        self.image_unit = GatedEmbedding(feature_width, settings.size)
        self.text_unit = GatedEmbedding(settings.size, settings.size)
        self.labels = settings.loss(settings.size)

    @classmethod
    def vocabulary(
        cls, settings: SwAMPVideoSettings, words: Vocabulary, captions: Iterable[str]
    ) -> Vocabulary:
        return words.extended(captions) if settings.word_vectors == "word2vec" else words

    def encode_images(self, batch: Batch) -> Embeddings:
        clips = self.pool(batch.features, batch.region_padding)[:, 0]
        return Embeddings(self.image_unit(clips)[:, None])

    def encode_texts(self, batch: Batch) -> Embeddings:
        return Embeddings(self.text_unit(self.text(batch.words))[:, None])

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        settings, scores = self.settings, self.score(images, texts)
        known = batch.image_index, settings.margin, settings.negatives, batch.left_out
        contrastive = {"triplet": triplet(scores, *known)}
        # A pair is a caption and its clip: a clip with five captions is in five pairs.
        of_captions = images.vectors.squeeze(1).index_select(0, batch.image_index)
        pairs = of_captions, texts.vectors.squeeze(1)
        return objective(contrastive, self.labels, *pairs, settings.contrastive)


class WordMaximum(nn.Module):
    """`max of relu(linear(vector))` over a caption's words and a vector of zeros.

    The released code fills captions with zeros to 20 words, so `relu(bias)` counts in the maximum
    of all but longer captions. Unknown words and padding are zeros too, and change nothing.
    """

    def __init__(self, words: WordTable, size: int) -> None:
        super().__init__()
        self.words = words
        self.linear = nn.Linear(words.embedding_dim, size)

    def forward(self, words: Tensor) -> Tensor:
        """`words (m, L)` ids, 0 = padding -> `(m, D)`."""
        vectors = pad(self.words(words), (0, 0, 0, 1))
        return self.linear(vectors).amax(1).relu()


class GatedEmbedding(nn.Module):
    """`y * sigmoid(W y + b)` with `y = linear(x)`, L2-normalised: dimensions gate each other.

    Args:
        width: F, size of the inputs.
        size: D, size of the outputs.

    References:
        Miech, Laptev and Sivic, Learning a Text-Video Embedding from Incomplete and Heterogeneous
        Data, 2018; the unit of HowTo100M and of SwAMP's appendix.
    """

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.project, self.gate = nn.Linear(width, size), nn.Linear(size, size)

    def forward(self, vectors: Tensor) -> Tensor:
        """`(n, F)` -> `(n, D)` of length 1."""
        projected = self.project(vectors)
        gated = projected * self.gate(projected).sigmoid()
        return unit(gated)
