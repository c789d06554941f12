"""PVSE: several interpretations of an image and of a caption, of which the best pair must match.

Song and Soleymani, Polysemous Visual-Semantic Embedding for Cross-Modal Retrieval, CVPR 2019.

In PIE-Net, K attention heads gather local features (grid cells or regions, word vectors). Each head
adds its result, as a residual, to the global feature. The similarity of two sets is the similarity
of their best pair (multiple-instance learning), because only some interpretations of an ambiguous
sample need to match.

The loss is the sum of the triplet loss with hardest negatives, the maximum mean discrepancy between
the two modalities' elements, and a diversity term that makes the residuals of a sample orthogonal.
"""

from torch import Tensor

from manymatch.batch.batch import Batch
from manymatch.config.preset import NonNegative, Positive
from manymatch.losses.diversity import gram_diversity
from manymatch.methods.shared.matching import weighted
from manymatch.methods.shared.method import Embeddings
from manymatch.methods.shared.set_method import SetMethod, SetMethodSettings, SetSettings
from manymatch.networks.encoders.image import ImageSettings
from manymatch.networks.encoders.text import TextSettings
from manymatch.similarities.set_similarity import SimilaritySettings


class PVSESettings(SetMethodSettings):
    """The defaults are the released code's for COCO."""

    image: ImageSettings = ImageSettings(encoder="raw")
    text: TextSettings = TextSettings(local="vectors", directions="concatenate")
    sets: SetSettings = SetSettings(module="pie_net", size=2)
    similarity: SimilaritySettings = SimilaritySettings(name="mil")
    margin: Positive = 0.1
    diversity_weight: NonNegative = 0.1


class PVSE(SetMethod):
    """Sets of PIE-Net, matched by their best pair."""

    title = "PVSE"
    paper = "Song and Soleymani, CVPR 2019"
    Settings = PVSESettings
    settings: PVSESettings

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        x, y = images.parts(), texts.parts()
        return self.matching_terms(images, texts, batch) | weighted(
            diversity=(
                self.settings.diversity_weight,
                lambda: gram_diversity(x["slots"], y["slots"]),
            ),
        )
