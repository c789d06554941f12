"""The common part of DivE, MaxMatch and PVSE: set encoders and a similarity of sets."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from manymatch.batch.batch import Batch
from manymatch.batch.padding import Padding
from manymatch.batch.shared_rows import share_rows
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Count, NonNegative, Positive, Probability
from manymatch.config.strict import Grouped, Strict
from manymatch.losses.contrastive import info_nce
from manymatch.losses.distributions import mmd
from manymatch.losses.triplets import Mining, mining_of_epoch, triplet
from manymatch.methods.shared.matching import check_weights, weighted
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.methods.shared.products import ProductForm, set_form
from manymatch.networks.encoders.image import ImageEncoder, ImageSettings
from manymatch.networks.encoders.text import TextSettings, text_encoder
from manymatch.networks.pooling.set_modules import PIENet, SetModule, TransformerDecoder
from manymatch.networks.pooling.slot_attention import PositionCode, SlotAttention, Start, Update
from manymatch.similarities.set_similarity import SetSimilarity, SimilaritySettings
from manymatch.similarities.vectors import unit
from manymatch.util.errors import ConfigError


class SetSettings(Strict):
    """How many elements a set has, and the module that predicts them. The defaults are DivE's."""

    module: Literal["slot_attention", "pie_net", "decoder"] = "slot_attention"
    size: Count = 4
    """K, the number of elements of a set."""
    iterations: Count = 4
    """T: passes of slot attention's one block, or layers of the decoder."""
    heads: Count = 4
    attention_size: Count | None = None
    """Size of slot attention's queries, keys and values, all heads together; null: the size of the
    embedding."""
    position_code: bool = False
    """Slot attention's keys of images know row and column of each cell; for features that are the
    cells of a grid. Boxes tell the cells' places. Features without boxes are a square grid."""
    dropout: Probability = 0.0
    """Slot attention and decoder: dropout of what attention gathers, and inside the MLP. PIE-Net:
    dropout of the sigmoids."""
    slots: Start = "learned"
    """Slot attention's slots before the first pass: learned vectors, or samples of a learned
    Gaussian."""
    update: Update = "residual"
    """How slot attention's slots take in what they gather: by addition, or by a step of a GRU."""
    hidden: Count | None = None
    """Width inside PIE-Net's attention; null: half the width of the inputs."""

    @model_validator(mode="after")
    def _options_of_slot_attention(self) -> Self:
        for key, default in (("slots", "learned"), ("update", "residual")):
            if self.module != "slot_attention" and getattr(self, key) != default:
                raise ValueError(f"{key} is an option of the module 'slot_attention' alone")
        return self


class SetMethodSettings(Grouped):
    """The settings of every method whose embeddings are sets; each method has its own defaults."""

    size: Annotated[int, Field(ge=2, multiple_of=2)] = 1024
    """D, the size of the elements."""
    image: ImageSettings = ImageSettings()
    text: TextSettings = TextSettings()
    sets: SetSettings = SetSettings()
    """The set modules of both modalities, which share no weights."""
    word_position_code: bool = False
    """Slot attention's keys of captions know the position of each word. The key
    `sets.position_code` is for images."""
    global_feature: bool = True
    """Elements are their slots plus the sample's global feature; false: the slots alone. Then the
    GRU of DivE and PVSE learns nothing, because only its global feature is used."""
    similarity: SimilaritySettings
    margin: Positive
    all_negatives_epochs: Annotated[int, Field(ge=0)] = 0
    """Number of first epochs in which the triplet loss is a mean over all negatives: the hardest
    negatives alone can make fresh weights collapse. A sum over them would drown the other terms."""
    triplet_weight: NonNegative = 1.0
    contrastive_weight: NonNegative = 0.0
    """Weight of InfoNCE over the scores."""
    temperature: Positive = 0.05
    """Temperature of InfoNCE."""
    mmd_weight: NonNegative = 0.01
    squared_mmd: bool = False
    """Whether MMD's kernel squares the distance."""
    diversity_weight: NonNegative = 0.01

    @model_validator(mode="after")
    def _one_loss_matches_pairs(self) -> Self:
        check_weights(self, "triplet_weight", "contrastive_weight")
        return self


class SetMethod(Method):
    """Encoders, set modules and a similarity; a method adds its losses."""

    Settings: ClassVar[type[SetMethodSettings]]
    embeds_sets = True

    def __init__(
        self, settings: SetMethodSettings, vocabulary: AnyVocabulary, feature_width: int
    ) -> None:
        super().__init__(settings, vocabulary, feature_width)
        size, sets = settings.size, settings.sets
        image = ImageEncoder(settings.image, feature_width, size)
        text = text_encoder(settings.text, vocabulary, size)
        places: PositionCode | None = "grid" if sets.position_code else None
        image_sets = set_module(sets, image.local_size, size, places)
        self.image = SetTower(image, image_sets, settings.global_feature)
        places = "sequence" if settings.word_position_code else None
        text_sets = set_module(sets, text.local_size, size, places)
        self.text = SetTower(text, text_sets, settings.global_feature)
        self.similarity = SetSimilarity(settings.similarity)
        self.settings = settings
        self.mining: Mining = "hardest"

    def encode_images(self, batch: Batch) -> Embeddings:
        return self.image(batch.features, batch.region_padding, self._boxes(batch))

    def encode_texts(self, batch: Batch) -> Embeddings:
        return self.text(batch.words, batch.word_padding)

    def image_passes(self, batch: Batch) -> Tensor | None:
        return self.image.passes(batch.features, batch.region_padding, self._boxes(batch))

    def _boxes(self, batch: Batch) -> Tensor | None:
        """`(n, R, 4)`: where the local features of images lie; None: they are the square grid of a
        network of pixels, or the store does not know."""
        return None if self.settings.image.reads_pixels else batch.boxes

    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        return self.similarity(images.vectors, texts.vectors, images.mask, texts.mask)

    def products(self, side: str, beta: float | None = None) -> ProductForm | None:
        return set_form(self.similarity) if beta is None else None

    def start_epoch(self, epoch: int) -> None:
        self.mining = mining_of_epoch(epoch, self.settings.all_negatives_epochs, first="mean")

    def matching_terms(
        self, images: Embeddings, texts: Embeddings, batch: Batch
    ) -> dict[str, Tensor]:
        """The terms that draw positive pairs together: triplet loss, MMD and InfoNCE.

        Raises:
            ValueError: sets are padded. `score` reads the masks, but the losses within sets do not.
        """
        settings, image_index, left_out = self.settings, batch.image_index, batch.left_out
        if any(side.mask is not None and not side.mask.all() for side in (images, texts)):
            raise ValueError(
                "the losses of set methods take sets of one size, but a mask leaves elements out"
            )
        x, y = images.vectors, texts.vectors
        scores = share_rows(lambda rows: self.similarity(rows, y), x)
        return weighted(
            triplet=(
                settings.triplet_weight,
                lambda: triplet(scores, image_index, settings.margin, self.mining, left_out),
            ),
            mmd=(settings.mmd_weight, lambda: mmd(x, y, squared=settings.squared_mmd)),
            contrastive=(
                settings.contrastive_weight,
                lambda: info_nce(scores, image_index, settings.temperature, left_out),
            ),
        )


class SetTower(nn.Module):
    """Encoder `(rows, padding) -> Encoding`, then a set module's `predict` -> `Embeddings`.

    Without `global_feature` the set module predicts from the local features alone. The global
    feature is still a part of the embeddings, for the losses that compare with it.
    """

    def __init__(self, encoder: nn.Module, sets: nn.Module, global_feature: bool) -> None:
        super().__init__()
        self.encoder: Any = encoder
        self.sets: Any = sets
        self.global_feature = global_feature

    def forward(self, rows: Tensor, padding: Padding, boxes: Tensor | None = None) -> Embeddings:
        """Features `(n, R, F)` or word ids `(n, R)`, and their padding -> n sets.

        The `boxes (n, R, 4)` say where the local features lie in the image, if known.
        """
        encoded = self.encoder(rows, padding)
        local, padding, globals_ = encoded.local, encoded.padding, encoded.globals()
        sets = self.sets.predict(local, padding, globals_ if self.global_feature else None, boxes)
        return Embeddings(
            vectors=unit(sets.vectors),
            globals=globals_,
            slots=sets.slots,
            attention=None if self.training else sets.attention,
        )

    def passes(self, rows: Tensor, padding: Padding, boxes: Tensor | None = None) -> Tensor | None:
        """Attention maps `(T, n, K, R)` of slot attention's passes; None for other modules."""
        if not isinstance(self.sets, SlotAttention):
            return None
        encoded = self.encoder(rows, padding)
        maps: Tensor = self.sets.attend(encoded.local, encoded.padding, boxes)[1]
        return maps


def set_module(
    settings: SetSettings, width: int, size: int, position_code: PositionCode | None = None
) -> SetModule:
    """A fresh module from inputs of `width` to elements of `size` dimensions.

    Slot attention's keys have the `position_code`.

    Raises:
        ConfigError: the number of heads does not divide the size that the heads share.
    """
    if settings.module == "pie_net":
        return PIENet(width, size, settings.size, settings.hidden, settings.dropout)
    decoder = settings.module == "decoder"
    shared = size if decoder else settings.attention_size or size
    if shared % settings.heads:
        what = "the embedding's size" if decoder else "attention_size"
        raise ConfigError(
            f"sets: {what} {shared} is not a multiple of {settings.heads} heads. Set heads to a "
            "divisor."
        )
    if decoder:
        return TransformerDecoder(
            width, size, settings.size, settings.iterations, settings.heads, settings.dropout
        )
    return SlotAttention(
        width,
        size,
        settings.size,
        settings.iterations,
        settings.heads,
        settings.attention_size,
        position_code,
        settings.dropout,
        settings.slots,
        settings.update,
    )
