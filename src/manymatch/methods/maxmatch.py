"""MaxMatch: sets whose elements are matched one to one, and kept from collapsing.

Alomari et al., Maximal Matching Matters: Preventing Representation Collapse for Robust
Cross-Modal Retrieval, ACL 2025.

Encoders and sets are DivE's. Two sets are compared along the one-to-one assignment of their
elements that maximises the sum of cosines, so that every element is trained and none can stand
in for all. Two losses more keep a set from collapsing: elements keep a distance from the
sample's global vector (L_GD) and from each other (L_ISD). With them come DivE's triplet loss,
discrepancy and diversity, and InfoNCE over the similarities (L_con) with a small weight.

"PVSE + MaxMatch" is `sets: {module: pie_net}` with PVSE's encoders.
"""

from __future__ import annotations

from torch import Tensor

from manymatch.config.preset import NonNegative, Positive
from manymatch.losses import global_discriminative, intra_set_divergence, slot_diversity
from manymatch.methods.base import Embeddings
from manymatch.methods.image_encoder import ImageSettings
from manymatch.methods.set_method import SetMethod, SetMethodSettings
from manymatch.methods.sets import SetSettings, SimilaritySettings
from manymatch.methods.weighted import weighted
from manymatch.shards.batch import Batch


class MaxMatchSettings(SetMethodSettings):
    """The defaults are the paper's for region features and a bi-GRU."""

    image: ImageSettings = ImageSettings(encoder="residual", dropout=0.1)
    sets: SetSettings = SetSettings(module="slot_attention", attention_size=2048)
    word_position_code: bool = True
    similarity: SimilaritySettings = SimilaritySettings(name="max_match")
    margin: Positive = 0.3
    """The paper's delta_1."""
    global_weight: NonNegative = 0.1
    """Of L_GD, which is the mean of the two modalities (eq. 7); L_ISD is their sum (eq. 8)."""
    global_margin: float = 0.6
    """The paper's delta_2."""
    intra_weight: NonNegative = 0.1
    """Of L_ISD."""
    intra_margin: float = 0.6
    """The paper's delta_3."""
    scale: Positive = 0.5
    """The paper's s, in both."""
    contrastive_weight: NonNegative = 0.001


class MaxMatch(SetMethod):
    """Maximal matching of sets that do not collapse."""

    Settings = MaxMatchSettings
    settings: MaxMatchSettings

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        chosen, x, y = self.settings, images.parts(), texts.parts()
        return self.matching_terms(images, texts, batch.owner) | weighted(
            global_discriminative=(
                chosen.global_weight,
                lambda: (self._from_global(x) + self._from_global(y)) / 2,
            ),
            intra_set_divergence=(
                chosen.intra_weight,
                lambda: self._from_each_other(x) + self._from_each_other(y),
            ),
            diversity=(
                chosen.diversity_weight,
                lambda: slot_diversity(x["slots"]) + slot_diversity(y["slots"]),
            ),
        )

    def _from_global(self, parts: dict[str, Tensor]) -> Tensor:
        chosen = self.settings
        return global_discriminative(
            parts["vectors"], parts["globals"], chosen.global_margin, chosen.scale
        )

    def _from_each_other(self, parts: dict[str, Tensor]) -> Tensor:
        chosen = self.settings
        return intra_set_divergence(parts["vectors"], chosen.intra_margin, chosen.scale)
