"""DivE's diversity loss: the slots of a set keep apart."""

from __future__ import annotations

from torch import Tensor

from manymatch.losses.element_pairs import element_cosines
from manymatch.losses.mean import sum_of_means


def slot_diversity(*slots: Tensor) -> Tensor:
    """The mean over pairs i < j of a set and over the batch of `exp(-2 ||x_i - x_j||^2)`.

    x are the L2-normalised slots. The loss is 0 for sets of one element. The losses of several
    batches are added.

    Args:
        slots: `(n, K, D)`, before the global vector is added: the elements share this vector and
            should be near each other.

    Relations:
        `intra_set_divergence` compares the elements, `gram_diversity` PIE-Net's residuals.

    References:
        Kim, Kim and Kwak, Improving Cross-Modal Retrieval with Set of Diverse Embeddings (DivE),
        CVPR 2023, L_div.
    """
    return sum_of_means((4 * (element_cosines(*slots) - 1)).exp(), slots)
