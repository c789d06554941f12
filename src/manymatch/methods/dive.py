"""DivE: an image and a caption are sets of diverse vectors, matched by smooth-Chamfer similarity.

Kim, Kim and Kwak, Improving Cross-Modal Retrieval with Set of Diverse Embeddings, CVPR 2023.

An encoder gives each sample local features (regions, grid cells, word vectors) and a global one.
Slot attention lets K learned slots compete for the local features over T passes, and each refined
slot is added to the global feature: a set of K elements. Two sets are compared by smooth-Chamfer
similarity, which gives every pair of elements a gradient, and the nearest pairs the largest.

The loss is a weighted sum: the triplet loss with hardest negatives, the maximum mean discrepancy
between the two modalities' elements, and a diversity term that keeps the slots of a set apart.
`SetMethodSettings` has the weights, and `SetMethod.matching_terms` gives all terms but the
diversity. The presets of `scenes` and `flickr8k` have InfoNCE (`contrastive_weight`) in place of
the triplet loss (`triplet_weight: 0`).
"""

from torch import Tensor

from manymatch.batch.batch import Batch
from manymatch.config.preset import Positive
from manymatch.losses.diversity import slot_diversity
from manymatch.methods.shared.matching import weighted
from manymatch.methods.shared.method import Embeddings
from manymatch.methods.shared.set_method import SetMethod, SetMethodSettings, SetSettings
from manymatch.networks.encoders.image import ImageSettings
from manymatch.similarities.set_similarity import SimilaritySettings


class DivESettings(SetMethodSettings):
    """The defaults are the paper's for region features and a bi-GRU."""

    image: ImageSettings = ImageSettings(encoder="residual", dropout=0.1)
    sets: SetSettings = SetSettings(module="slot_attention", attention_size=2048)
    word_position_code: bool = True
    similarity: SimilaritySettings = SimilaritySettings(name="smooth_chamfer")
    margin: Positive = 0.2


class DivE(SetMethod):
    """Slot attention, smooth-Chamfer similarity, diverse sets."""

    title = "DivE"
    paper = "Kim et al., CVPR 2023"
    Settings = DivESettings
    settings: DivESettings

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        x, y = images.parts(), texts.parts()
        return self.matching_terms(images, texts, batch) | weighted(
            diversity=(
                self.settings.diversity_weight,
                lambda: slot_diversity(x["slots"], y["slots"]),
            ),
        )
