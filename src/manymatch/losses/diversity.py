"""Diversity losses: elements of a set, or embeddings, keep apart."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor, pdist

from manymatch.losses.contrastive import sum_of_means
from manymatch.similarities.vectors import full_precision, keep_precision, unit


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


def gram_diversity(*slots: Tensor) -> Tensor:
    """The mean over the batch of `||G - diag(G)||_F / K^2`, G the cosines of a sample's residuals.

    Args:
        slots: `(n, K, D)` residuals, before they are added to the global vector. With K = 1 the
            loss is 0. The losses of several batches are added.

    Relations:
        `slot_diversity` is DivE's diversity loss.

    References:
        Song and Soleymani, Polysemous Visual-Semantic Embedding for Cross-Modal Retrieval
        (PVSE), CVPR 2019, L_div, as in its released code.
    """
    size = slots[0].shape[1]
    own = torch.eye(size, dtype=torch.bool, device=slots[0].device)
    others = gram(*slots).masked_fill(own, 0.0)
    return sum_of_means(torch.linalg.vector_norm(others, dim=(1, 2)), slots) / size**2


def intra_set_divergence(*vectors: Tensor, margin: float, scale: float) -> Tensor:
    """The mean over batch and pairs j < k of `exp(scale (cos(e_j, e_k) - margin))`; 0 if K = 1.

    Args:
        vectors: `(n, K, D)` elements; normalised here. The losses of several batches are added.
        margin: the paper's delta_3.
        scale: the paper's s, > 0.

    Relations:
        `slot_diversity` does the same for slots, before the global vector is added.

    References:
        Alomari et al., Maximal Matching Matters: Preventing Representation Collapse for Robust
        Cross-Modal Retrieval (MaxMatch), ACL 2025, L_ISD.
    """
    cosines = element_cosines(*vectors)
    return sum_of_means((scale * (cosines - margin)).exp(), vectors)


def global_discriminative(*sides: tuple[Tensor, Tensor], margin: float, scale: float) -> Tensor:
    """The mean over batch and K of `exp(scale (cos(element, global) - margin))`.

    Args:
        sides: elements `(n, K, D)` and the samples' global vectors `(n, D)`; normalised here. The
            losses of several batches are added.
        margin: the paper's delta_2.
        scale: the paper's s, > 0.

    Relations:
        `intra_set_divergence` compares the elements of a set with each other.

    References:
        Alomari et al., Maximal Matching Matters: Preventing Representation Collapse for Robust
        Cross-Modal Retrieval (MaxMatch), ACL 2025, L_GD.
    """
    elements, whole = (
        unit(torch.cat([full_precision(side[part]) for side in sides])) for part in (0, 1)
    )
    cosines = (elements * whole[:, None]).sum(2)
    return sum_of_means((scale * (cosines - margin)).exp(), [vectors for vectors, _ in sides])


def uniformity(vectors: Tensor) -> Tensor:
    """`log mean exp(-2 ||x_i - x_j||^2)` over the pairs i < j of `vectors (n, D)`; 0 if n < 2.

    Relations:
        `slot_diversity` has the same kernel and compares the slots of one set.

    References:
        Wang and Isola, Understanding Contrastive Representation Learning through Alignment and
        Uniformity on the Hypersphere, ICML 2020, eq. 5; PCME's released code, for CUB.
    """
    if len(vectors) < 2:
        return vectors.sum() * 0.0
    exponents = -2 * pdist(vectors).square()
    return exponents.logsumexp(0) - math.log(len(exponents))


def gram(*sets: Tensor) -> Tensor:
    """Cosines `(n, K, K)` of the elements of each of all `sets (n, K, D)`, in float32 or better."""
    elements = unit(torch.cat([full_precision(part) for part in sets]))
    with keep_precision(elements):
        return elements @ elements.mT


def element_cosines(*sets: Tensor) -> Tensor:
    """`(n, K (K - 1) / 2)` cosines of the pairs j < k of each of all `sets (n, K, D)`; `(n, 0)` if
    K = 1."""
    pairs = _pairs(sets[0].shape[1], sets[0].device)
    return gram(*sets).flatten(1).index_select(1, pairs)


@lru_cache
@torch.inference_mode(False)
def _pairs(size: int, device: torch.device) -> Tensor:
    """The numbers of the pairs j < k among all `size * size`."""
    first, second = torch.triu_indices(size, size, offset=1, device=device)
    return first * size + second
