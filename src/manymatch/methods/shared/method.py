"""The contract of a method: what training and evaluation call."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from manymatch.batch.batch import Batch
from manymatch.config.preset import Precision
from manymatch.config.strict import Strict
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.methods.shared.products import COSINE, ProductForm
from manymatch.networks.encoders.text import TextSettings
from manymatch.scene_graphs.verbs import GraphReader, add_verbs, as_parsed
from manymatch.similarities.vectors import cosine

if TYPE_CHECKING:
    from manymatch.batch.vocabulary import Vocabulary
    from manymatch.batch.wordpieces import AnyVocabulary


class Method(nn.Module, ABC):
    """One way to match images and captions: encoders, pooling, similarity and losses.

    `methods.build_method` builds a method as `Class(settings, vocabulary, feature_width)`.
    """

    title: ClassVar[str]
    """What its paper calls the method."""

    paper: ClassVar[str]
    """The first author, the conference and the year."""

    Settings: ClassVar[type[Strict]]
    """The settings that a preset may give under `model:`."""

    reads_graphs: ClassVar[bool] = False
    """Whether the method reads captions as scene graphs. Then a new caption must be parsed, and
    batches contain graphs."""

    embeds_sets: ClassVar[bool] = False
    """Whether an item may have several vectors (K > 1)."""

    read_graph: GraphReader | None = None
    """What the method makes of a parsed graph; None where the method reads no graphs."""

    image: Any
    text: Any
    """The networks of `encode_images` and `encode_texts`, unless a method overrides these."""

    learns: ClassVar[bool] = True
    """Whether anything is trained. If not, the stage `train` writes the model at once."""

    precision: Precision = "auto"
    """The precision of the preset, in which the method embeds."""

    def __init__(self, settings: Any, vocabulary: "AnyVocabulary", feature_width: int) -> None:
        super().__init__()
        self.read_graph = self.graph_reader(settings)

    @classmethod
    def graph_reader(cls, settings: Any) -> GraphReader | None:
        """What a method with these `settings` makes of a parsed graph."""
        return as_parsed if cls.reads_graphs else None

    @classmethod
    def vocabulary(
        cls, settings: Any, words: "Vocabulary", captions: Iterable[str]
    ) -> "AnyVocabulary":
        """The vocabulary that numbers captions: the `words` of the training captions, or the
        wordpieces of the BERT that `settings.text` names. Only a method whose word vectors are not
        learned may read the words of `captions`, the captions of all splits."""
        text = getattr(settings, "text", None)
        return text.vocabulary(words) if isinstance(text, TextSettings) else words

    def check_features(self, attributes: Mapping[str, str]) -> None:
        """Refuse image features that the method cannot read, before it is trained on them.

        Args:
            attributes: those of the features' store, such as model and weights.

        Raises:
            ConfigError: the features do not fit.
        """

    def encode_images(self, batch: Batch) -> Embeddings:
        """The embeddings of the batch's n images: `vectors (n, K, D)`; by default what `embedded`
        makes of the output of the network `image`."""
        return self.embedded(self.image(batch.features, batch.region_padding))

    def encode_texts(self, batch: Batch) -> Embeddings:
        """The embeddings of the batch's m captions: `vectors (m, K, D)`; by default what `embedded`
        makes of the output of the network `text`."""
        return self.embedded(self.text(batch.words, batch.word_padding))

    def embedded(self, encoded: Any) -> Embeddings:
        """The embeddings by the output of `image` or of `text`; by default the output itself."""
        embeddings: Embeddings = encoded
        return embeddings

    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        """Scores `(n_images, n_texts)` by which retrieval ranks, of any block of either side; by
        default the cosines of single vectors of length 1."""
        return cosine(images.vectors, texts.vectors)

    def products(self, side: str, beta: float | None = None) -> ProductForm | None:
        """How the score by which the method ranks a gallery reads products of vectors.

        The default is the cosine of `vectors`. A method with another score overrides this function;
        otherwise a search would leave out items that belong to the result. With None, a search
        computes the exact scores of all items.

        Args:
            side: the side of the gallery, "images" or "texts".
            beta: the weight of the whole caption in a score that is re-ranked by entities
                (`evaluation.ensemble`); None: the score itself.
        """
        return COSINE if beta is None else None

    @property
    def shown_graph(self) -> GraphReader:
        """What results show and ask about of a parsed graph: the graph that the method reads.

        A method without graphs shows that of CORA's default, so that the same entities are asked
        of all methods.
        """
        return self.read_graph or add_verbs

    def image_passes(self, batch: Batch) -> Tensor | None:
        """Attention maps `(T, n, K, R)` of a method that refines an image's set in T passes.

        The last map is the `attention` of `encode_images`. None if there are no passes.
        """
        return None

    @property
    def t2i_score(self) -> Callable[[Embeddings, Embeddings], Tensor] | None:
        """The score `(n_images, n_texts)` by which captions rank images, where the two directions
        differ; `score` then serves images that rank captions. None if `score` serves both."""
        return None

    @abstractmethod
    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        """Named, weighted terms of the loss; training minimises their sum.

        The loss sees the batch of all processes together. `training.gather` joins every part of
        both `Embeddings` and `batch.image_index`, the row of each caption's image. Row numbers
        refer to the whole batch. Everything else in `batch` is this process's part: do not read it.
        """

    def start_epoch(self, epoch: int) -> None:
        """Called before each training epoch (0-based), for losses that change with time."""

    def start_step(self, epochs: float) -> None:
        """Called before each training step with the number of epochs that are done after it, for
        losses that warm up: 0.25 for the step that ends the first quarter of the first epoch. It
        is never 0, so that the first step learns too."""
