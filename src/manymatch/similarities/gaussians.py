"""Distances to Gaussians, between Gaussians and between samples of Gaussians."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.similarities.vectors import full_precision, keep_precision


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
    with keep_precision(candidates):
        mean, points = full_precision(query_mean), full_precision(candidates)
        precision = (-full_precision(query_log_variance)).exp()
        weighted = mean * precision
        constant = (weighted * mean).sum(1, keepdim=True)
        squares = torch.addmm(constant, precision, points.square().T)
        return torch.addmm(squares, weighted, points.T, alpha=-2).clamp(min=0)


def closed_form_distance(
    image_mean: Tensor, image_log_variance: Tensor, text_mean: Tensor, text_log_variance: Tensor
) -> Tensor:
    """`d(v, t) = ||mu_v - mu_t||^2 + ||sigma_v^2 + sigma_t^2||_1` of all pairs.

    This is the mean of `||x - y||^2` over samples x and y of the two Gaussians. The square is
    expanded, so that one matrix product serves all pairs. The computation is never in half
    precision.

    Args:
        image_mean, image_log_variance: `(n, D)` of diagonal Gaussians.
        text_mean, text_log_variance: `(m, D)`.

    Returns:
        `(n, m)`.

    Relations:
        `pair_distances` of samples has a mean over many samples; here no sample is drawn.

    References:
        Chun, Improved Probabilistic Image-Text Representations (PCME++), ICLR 2024, eq. 1.
    """
    with keep_precision(image_mean):
        images, texts = full_precision(image_mean), full_precision(text_mean)
        of_image = (images.square() + full_precision(image_log_variance).exp()).sum(1)
        of_text = (texts.square() + full_precision(text_log_variance).exp()).sum(1)
        return torch.addmm(of_image[:, None] + of_text, images, texts.T, alpha=-2)


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
    with keep_precision(images):
        distances = torch.cdist(
            full_precision(images).flatten(0, 1), full_precision(texts).flatten(0, 1)
        )
    return distances.view(n, images.shape[1], m, texts.shape[1]).transpose(1, 2)
