"""MaxMatch: sets whose elements are matched one to one and do not collapse.

Alomari et al., Maximal Matching Matters: Preventing Representation Collapse for Robust
Cross-Modal Retrieval, ACL 2025.

Encoders and sets are DivE's. Two sets are compared along the one-to-one assignment of their
elements that maximises the sum of cosines, so that every element is trained and none replaces the
others. Two losses keep a set from collapsing: the elements keep a distance from the sample's global
vector (L_GD) and from each other (L_ISD). The other terms are DivE's triplet loss, discrepancy and
diversity, and InfoNCE over the similarities (L_con) with a small weight.

"PVSE + MaxMatch" is `sets: {module: pie_net}` with PVSE's encoders.
"""

from torch import Tensor

from manymatch.batch.batch import Batch
from manymatch.config.preset import NonNegative, Positive
from manymatch.losses.diversity import global_discriminative, intra_set_divergence, slot_diversity
from manymatch.methods.shared.matching import weighted
from manymatch.methods.shared.method import Embeddings
from manymatch.methods.shared.set_method import SetMethod, SetMethodSettings, SetSettings
from manymatch.networks.encoders.image import ImageSettings
from manymatch.similarities.set_similarity import SimilaritySettings


class MaxMatchSettings(SetMethodSettings):
    """The defaults are the paper's for region features and a bi-GRU."""

    image: ImageSettings = ImageSettings(encoder="residual", dropout=0.1)
    sets: SetSettings = SetSettings(module="slot_attention", attention_size=2048)
    word_position_code: bool = True
    similarity: SimilaritySettings = SimilaritySettings(name="max_match")
    margin: Positive = 0.3
    """The paper's delta_1."""
    global_weight: NonNegative = 0.1
    """Weight of L_GD, the mean of the two modalities (eq. 7)."""
    global_margin: float = 0.6
    """The paper's delta_2."""
    intra_weight: NonNegative = 0.1
    """Weight of L_ISD, the sum of the two modalities (eq. 8)."""
    intra_margin: float = 0.6
    """The paper's delta_3."""
    scale: Positive = 0.5
    """The paper's s, in L_GD and in L_ISD."""
    contrastive_weight: NonNegative = 0.001
    temperature: Positive = 0.01
    """Temperature of InfoNCE; CORA's, which the paper follows for L_con."""


class MaxMatch(SetMethod):
    """Maximal matching of sets that do not collapse."""

    title = "MaxMatch"
    paper = "Alomari et al., ACL 2025"
    Settings = MaxMatchSettings
    settings: MaxMatchSettings

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        settings, x, y = self.settings, images.parts(), texts.parts()
        vectors, scale = (x["vectors"], y["vectors"]), settings.scale
        global_pairs = zip(vectors, (x["globals"], y["globals"]), strict=True)

        return self.matching_terms(images, texts, batch) | weighted(
            global_discriminative=(
                settings.global_weight,
                lambda: (
                    global_discriminative(*global_pairs, margin=settings.global_margin, scale=scale)
                    / 2
                ),
            ),
            intra_set_divergence=(
                settings.intra_weight,
                lambda: intra_set_divergence(*vectors, margin=settings.intra_margin, scale=scale),
            ),
            diversity=(
                settings.diversity_weight,
                lambda: slot_diversity(x["slots"], y["slots"]),
            ),
        )
