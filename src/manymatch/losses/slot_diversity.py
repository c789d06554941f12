"""DivE's diversity: the element slots of a set keep apart."""

from __future__ import annotations

from torch import Tensor

from manymatch.losses.element_pairs import element_cosines
from manymatch.losses.mean import mean


def slot_diversity(slots: Tensor) -> Tensor:
    """Mean over pairs i < j of a set and over the batch of `exp(-2 ||x_i - x_j||^2)`.

    x are the L2-normalised slots. 0 for sets of one element.

    Args:
        slots: `(n, K, D)`, what was added to the global vector, not what came of it: the
            elements themselves share that vector and should lie near each other.

    Relations:
        `intra_set_divergence` looks at the elements, `gram_diversity` at PIE-Net's residuals.

    References:
        Kim, Kim and Kwak, Improving Cross-Modal Retrieval with Set of Diverse Embeddings (DivE),
        CVPR 2023, L_div.
    """
    return mean((4 * (element_cosines(slots) - 1)).exp())
