"""MaxMatch: every element of one set matched to another element of the other set."""

from __future__ import annotations

from torch import Tensor

from manymatch.similarities.assignment import best_columns
from manymatch.similarities.blocks import scored


def max_match(images: Tensor, texts: Tensor) -> Tensor:
    """`1/K sum_k (exp(c[k, pi(k)]) - 1)`, c the cosines of the elements, pi the one-to-one
    assignment that maximises the sum of `c[k, pi(k)]` (not of the exponentials).

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised. If K and L differ, each element of the smaller set is
            matched to one of the larger set, and the mean is over the smaller set.

    Returns:
        `(n, m)` in [1/e - 1, e - 1]. pi has no gradient: gradients flow through the matched cosines
        alone. pi is the exact optimum for any K and L (see `best_columns`). Up to 8 x 8 in float32
        it costs little beside the matrix product; larger sets take several microseconds a pair, and
        the time grows with `K^2 L`.

    Relations:
        `top_match` takes the best cosines, whether one-to-one or not.

    References:
        Alomari et al., Maximal Matching Matters: Preventing Representation Collapse for Robust
        Cross-Modal Retrieval (MaxMatch), ACL 2025, eq. 2 and 4.
    """
    return scored(images, texts, _matched)


def _matched(cosines: Tensor) -> Tensor:
    n_image, n_text = cosines.shape[:2]
    smaller_first = cosines if n_image <= n_text else cosines.transpose(0, 1)
    columns = best_columns(smaller_first.detach())
    matched = smaller_first.gather(1, columns[:, None])[:, 0]
    scores = matched.exp_().mean(0) - 1
    if n_image != n_text:  # a NaN in an element without a match must reach the score
        scores = scores + 0 * cosines.detach().sum((0, 1))
    return scores
