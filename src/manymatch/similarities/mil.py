"""Multiple-instance similarity: the similarity of the best pair of elements."""

from __future__ import annotations

from torch import Tensor

from manymatch.similarities.blocks import scored


def mil(images: Tensor, texts: Tensor) -> Tensor:
    """`max_{x, y} cos(x, y)` over the elements x of an image and y of a text.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.

    Returns:
        `(n, m)` in [-1, 1].

    References:
        Song and Soleymani, Polysemous Visual-Semantic Embedding (PVSE), CVPR 2019, eq. 4.
    """
    return scored(images, texts, _largest)


def _largest(cosines: Tensor) -> Tensor:
    return cosines.amax((0, 1))
