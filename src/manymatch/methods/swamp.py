"""SwAMP: pairs without labels get pseudo-labels, and each sample learns those of its partner.

Kim, SwAMP: Swapped Assignment of Multi-Modal Pairs for Cross-Modal Retrieval, AISTATS 2023.

Prototype attention (PAR) reads images and captions by the same p learned queries: each query
attends to the local features (regions, or a bi-GRU's states of the words). Each of H heads has
queries of its own. The embedding is the concatenation of all H p results, L2-normalised. Scores
are cosines.

A contrastive loss L_c treats every other pair as a negative. SwAMP adds a second loss, L_s, that
does not. The samples of the latest batches are assigned to classes by their class probabilities, so
that all classes are used equally. Each sample learns to predict the classes of its partner in the
other modality. The loss is `L_c + lambda L_s`, where L_c is a sum over the pairs of the batch.
"""

from typing import Annotated

from pydantic import Field
from torch import Tensor, nn

from manymatch.batch.batch import Batch
from manymatch.batch.shared_rows import share_rows
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Count, Positive, Probability
from manymatch.config.strict import Grouped
from manymatch.losses.pseudo_labels import LabelSettings, objective
from manymatch.methods.shared.matching import Matching, MatchingSettings
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.networks.encoders.encoding import Encoding
from manymatch.networks.encoders.image import ImageEncoder, ImageSettings
from manymatch.networks.encoders.text import TextSettings, text_encoder
from manymatch.networks.pooling.set_modules import PrototypeAttention
from manymatch.similarities.vectors import cosine, unit


class SwAMPSettings(Grouped, MatchingSettings, LabelSettings):
    """The defaults are the paper's for Flickr30K. `weight: 0` trains with L_c alone."""

    size: Annotated[int, Field(ge=2, multiple_of=2)] = 1024
    """D, the size of local features; an embedding has `heads * n_prototypes * size` dimensions."""
    image: ImageSettings = ImageSettings(encoder="linear")
    text: TextSettings = TextSettings(word_vectors="learned", local="states")
    n_prototypes: Count = 20
    """p, the number of PAR's queries (the number of classes is `n_classes`)."""
    heads: Count = 1
    """H, the number of times that PAR is repeated with other queries."""
    attention_temperature: Positive = 0.5
    embedding_dropout: Probability = 0.0
    """Dropout of both embeddings, before their normalisation."""
    all_negatives_epochs: Annotated[int, Field(ge=0)] = 0


class SwAMP(Method):
    """Prototype attention, a contrastive loss, and swapped class labels."""

    title = "SwAMP"
    paper = "Kim, AISTATS 2023"
    Settings = SwAMPSettings

    def __init__(
        self, settings: SwAMPSettings, vocabulary: AnyVocabulary, feature_width: int
    ) -> None:
        super().__init__(settings, vocabulary, feature_width)
        size, queries = settings.size, settings.heads * settings.n_prototypes
        self.image = ImageEncoder(settings.image, feature_width, size)
        self.text = text_encoder(settings.text, vocabulary, size)
        self.read = PrototypeAttention(size, queries, settings.attention_temperature)
        self.dropout = nn.Dropout(settings.embedding_dropout)
        self.matching = Matching(settings)
        self.labels = settings.loss(queries * size)

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        # An embedding is so long that the cosines take more than the exchange of their rows.
        scores = share_rows(lambda rows: cosine(rows, texts.vectors), images.vectors)
        contrastive = self.matching.terms(scores, batch.image_index, batch.left_out)
        # A pair is a caption and its image: an image with five captions is in five pairs.
        of_captions = images.vectors.squeeze(1).index_select(0, batch.image_index)
        pairs = of_captions, texts.vectors.squeeze(1)
        return objective(contrastive, self.labels, *pairs)

    def start_epoch(self, epoch: int) -> None:
        self.matching.start_epoch(epoch)

    def embedded(self, encoded: Encoding) -> Embeddings:
        read = self.dropout(self.read(encoded.local, encoded.padding)).flatten(1)
        return Embeddings(unit(read)[:, None])
