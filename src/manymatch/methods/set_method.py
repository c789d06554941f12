"""What DivE, MaxMatch and PVSE share: a set from each modality and a similarity of sets."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator
from torch import Tensor

from manymatch.config.grouped import Grouped
from manymatch.config.preset import NonNegative, Positive
from manymatch.losses import info_nce, mmd, triplet
from manymatch.losses.triplet import Mining
from manymatch.methods.base import Embeddings, Method
from manymatch.methods.image_encoder import ImageSettings, image_encoder
from manymatch.methods.set_tower import SetTower
from manymatch.methods.sets import SetSettings, SimilaritySettings, set_module
from manymatch.methods.text_encoder import TextSettings, text_encoder
from manymatch.methods.weighted import weighted
from manymatch.shards.batch import Batch
from manymatch.similarities.by_name import SetSimilarity
from manymatch.text.wordpieces import AnyVocabulary


class SetMethodSettings(Grouped):
    """Settings of every method whose embeddings are sets; each method has its own defaults."""

    size: Annotated[int, Field(ge=2, multiple_of=2)] = 1024
    """D, of the elements."""
    image: ImageSettings = ImageSettings()
    text: TextSettings = TextSettings()
    sets: SetSettings = SetSettings()
    """Of both modalities, which share no weights."""
    word_position_code: bool = False
    """`sets.position_code` for captions (there it is that of images)."""
    global_feature: bool = True
    """Elements are their slots plus the sample's global feature; false: the slots alone, and
    DivE's and PVSE's GRU, of which only the global feature is read, learns nothing."""
    similarity: SimilaritySettings
    margin: Positive
    all_negatives_epochs: Annotated[int, Field(ge=0)] = 0
    """In so many first epochs the triplet loss sums over all negatives: the hardest alone can
    make fresh weights collapse."""
    triplet_weight: NonNegative = 1.0
    contrastive_weight: NonNegative = 0.0
    """Of InfoNCE over the scores, captions of one image not counted as each other's negatives."""
    temperature: Positive = 0.05
    """Of InfoNCE."""
    mmd_weight: NonNegative = 0.01
    squared_mmd: bool = False
    """Square the distance in MMD's kernel."""
    diversity_weight: NonNegative = 0.01

    @model_validator(mode="after")
    def _something_matches(self) -> Self:
        if not self.triplet_weight and not self.contrastive_weight:
            raise ValueError("triplet_weight and contrastive_weight are both 0: nothing matches")
        return self


class SetMethod(Method):
    """Encoders, set modules and similarity; a method adds its losses."""

    Settings: ClassVar[type[SetMethodSettings]]

    def __init__(
        self, settings: SetMethodSettings, vocabulary: AnyVocabulary, feature_width: int
    ) -> None:
        super().__init__(settings, vocabulary, feature_width)
        size, sets = settings.size, settings.sets
        image = image_encoder(settings.image, feature_width, size)
        text = text_encoder(settings.text, vocabulary, size)
        of_words = sets.model_copy(update={"position_code": settings.word_position_code})
        self.image = SetTower(
            image, set_module(sets, image.local_size, size), settings.global_feature
        )
        self.text = SetTower(
            text, set_module(of_words, text.local_size, size), settings.global_feature
        )
        self.similarity = SetSimilarity(**dict(settings.similarity))
        self.settings = settings
        self.mining: Mining = "hardest"

    def encode_images(self, batch: Batch) -> Embeddings:
        return self.image(batch.features, batch.region_mask)

    def encode_texts(self, batch: Batch) -> Embeddings:
        return self.text(batch.words, batch.word_mask)

    def image_passes(self, batch: Batch) -> Tensor | None:
        return self.image.passes(batch.features, batch.region_mask)

    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        return self.similarity(images.vectors, texts.vectors, images.mask, texts.mask)

    def start_epoch(self, epoch: int) -> None:
        self.mining = "all" if epoch < self.settings.all_negatives_epochs else "hardest"

    def matching_terms(
        self, images: Embeddings, texts: Embeddings, owner: Tensor
    ) -> dict[str, Tensor]:
        """What draws matches together: triplet loss, MMD and, where it is wanted, InfoNCE.

        Raises:
            ValueError: sets are padded, which `score` minds but the losses within sets do not.
        """
        chosen = self.settings
        if any(side.mask is not None and not side.mask.all() for side in (images, texts)):
            raise ValueError("the losses take sets of one size, but a mask leaves elements out")
        scores = self.score(images, texts)
        x, y = images.vectors, texts.vectors
        return weighted(
            triplet=(
                chosen.triplet_weight,
                lambda: triplet(scores, owner, chosen.margin, self.mining),
            ),
            mmd=(chosen.mmd_weight, lambda: mmd(x, y, squared=chosen.squared_mmd)),
            contrastive=(
                chosen.contrastive_weight,
                lambda: info_nce(scores, owner, chosen.temperature),
            ),
        )
