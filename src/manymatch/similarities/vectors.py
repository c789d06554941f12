"""Vectors: full precision, length 1, and the cosines and distances of all pairs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def full_precision(vectors: Tensor) -> Tensor:
    """`vectors`, converted to float32 if they have half precision."""
    return vectors.float() if vectors.dtype in (torch.float16, torch.bfloat16) else vectors


def unit(vectors: Tensor) -> Tensor:
    """`vectors (..., D)` divided by their lengths, in float32 or better."""
    return functional.normalize(full_precision(vectors), dim=-1)


def cosine(images: Tensor, texts: Tensor) -> Tensor:
    """The cosine of two vectors; for two sets, the mean cosine over all pairs of elements.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.

    Returns:
        `(n, m)` in [-1, 1]. With K = L = 1 this is the score of VSE++, VSE-infinity and CORA.
    """
    return pair_cosines(_mean(images), _mean(texts)).squeeze((2, 3))


def _mean(sets: Tensor) -> Tensor:
    """The mean `(n, 1, D)` of each set `(n, K, D)`; a single vector is not copied."""
    return sets if sets.shape[1] == 1 else full_precision(sets).mean(1, keepdim=True)


def pair_cosines(images: Tensor, texts: Tensor) -> Tensor:
    """Cosines `(n, m, K, L)` of the elements of `images (n, K, D)` and `texts (m, L, D)`.

    Both are L2-normalised. The cosines are one matrix product, never in half precision: at a
    temperature of 0.01 the rounding error of a bfloat16 cosine is as large as relevant differences.
    """
    product = _product(images.flatten(0, 1), texts.flatten(0, 1))
    n, m = images.shape[0], texts.shape[0]
    return product.view(n, images.shape[1], m, texts.shape[1]).transpose(1, 2)


def plane_cosines(images: Tensor, texts: Tensor) -> Tensor:
    """The cosines as `(K, L, n, m)`: for two elements a plane of all pairs of sets.

    The rows of a plane are contiguous, so that an operation on planes reads memory in order.
    """
    (n, n_image, _), (m, n_text, _) = images.shape, texts.shape
    product = _product(images.transpose(0, 1).flatten(0, 1), texts.transpose(0, 1).flatten(0, 1))
    return product.view(n_image, n, n_text, m).transpose(1, 2)


def _product(rows: Tensor, columns: Tensor) -> Tensor:
    with torch.autocast(rows.device.type, enabled=False):
        return full_precision(rows) @ full_precision(columns).T


def mahalanobis(query_mean: Tensor, query_log_variance: Tensor, candidates: Tensor) -> Tensor:
    """Squared Mahalanobis distance `d2(q, c) = sum_d (c_d - mu_qd)^2 / var_qd` of all pairs.

    The square is expanded to `c^2 / var - 2 c mu / var + mu^2 / var`: two matrix products, and no
    `(q, c, D)` tensor. The computation is never in half precision, and the result never below 0.
    The rounding error is about 1e-6 times `sum_d (c_d^2 + mu_qd^2) / var_qd` in float32.

    Args:
        query_mean, query_log_variance: `(q, D)` of diagonal Gaussians.
        candidates: `(c, D)`.

    Returns:
        `(q, c)`; half of it is the candidate's negative log likelihood, up to a term that depends
        on the query alone.

    References:
        Wang et al., Multilateral Semantic Relations Modeling for Image Text Retrieval (MSRM),
        CVPR 2023, eq. 4.
    """
    with torch.autocast(candidates.device.type, enabled=False):
        mean, points = full_precision(query_mean), full_precision(candidates)
        precision = (-full_precision(query_log_variance)).exp()
        weighted = mean * precision
        constant = (weighted * mean).sum(1, keepdim=True)
        squares = torch.addmm(constant, precision, points.square().T)
        return torch.addmm(squares, weighted, points.T, alpha=-2).clamp(min=0)


def pair_distances(images: Tensor, texts: Tensor) -> Tensor:
    """`||x - y||` of the elements x of `images (n, K, D)` and y of `texts (m, L, D)`.

    The computation is never in half precision. Large blocks expand the square into one matrix
    product.

    Returns:
        `(n, m, K, L)`; the gradient is 0 where two elements are equal.

    Relations:
        `pair_cosines` compares elements of length 1. Here elements may have any length, as the
        samples of PCME's Gaussians.
    """
    n, m = images.shape[0], texts.shape[0]
    with torch.autocast(images.device.type, enabled=False):
        distances = torch.cdist(
            full_precision(images).flatten(0, 1), full_precision(texts).flatten(0, 1)
        )
    return distances.view(n, images.shape[1], m, texts.shape[1]).transpose(1, 2)
