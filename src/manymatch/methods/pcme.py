"""PCME: images and captions are Gaussians, and a pair matches with a probability.

Chun et al., Probabilistic Embeddings for Cross-Modal Retrieval, CVPR 2021.

PIE-Net predicts the mean, a second attention the log variance. Seven samples of each Gaussian make
49 pairs of samples for an image and a caption. Their distances become match probabilities
sigmoid(-a ||x - y|| + b), whose mean is the probability that image and caption match. The soft
contrastive loss classifies each pair of a batch by itself. A weak pull towards the standard normal
keeps variances from collapsing. On CUB a uniformity loss also spreads the samples over the space.
"""

from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from manymatch.batch.batch import Batch
from manymatch.batch.shared_rows import share_rows
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Count, NonNegative, Positive
from manymatch.losses.contrastive import positive_pairs
from manymatch.losses.diversity import uniformity
from manymatch.losses.probabilistic import log_mean_probability, soft_contrastive
from manymatch.losses.pseudo_labels import Reduction
from manymatch.methods.shared.gaussian_tower import (
    GaussianSettings,
    PositiveScalar,
    gaussian,
    gaussian_towers,
)
from manymatch.methods.shared.matching import weighted
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.methods.shared.products import ROUNDED, ProductForm, ProductQuery
from manymatch.networks.pooling.gaussian import kl_to_standard, samples
from manymatch.similarities.gaussians import pair_distances
from manymatch.similarities.vectors import cosine

_DISTANCES_AT_ONCE = 8_000_000
"""Distances between samples that retrieval holds at once: 32 MB."""
_SAMPLES_COMPARED = 128
"""Rows of a batch that the uniformity loss compares, as in the released code."""


class PCMESettings(GaussianSettings):
    """The defaults are the released code's for COCO."""

    samples: Count = 7
    """Number of samples of each Gaussian."""
    scale: Positive = 30.0
    """First value of the paper's a, which is learned. The released code starts at 15 (5 on CUB).
    Its sigmoid is `e^x / (e^x + e^-x)`, the usual sigmoid of 2x, so that its 15 is 30 here."""
    shift: float = 30.0
    """First value of the paper's b, which is learned. The released 15 is 30 here, see `scale`."""
    kl_weight: NonNegative = 1e-5
    """Weight of the KL term, a sum over the batch, beside a sum over pairs in which each pair
    counts twice. This total is the loss of the released code; here the loss is the total divided
    by the number of terms of the sum over pairs, `2 n m`."""
    uniformity_weight: NonNegative = 0.0
    """Weight of the uniformity loss beside the same sum; 10 on CUB."""
    reduction: Reduction = "mean"
    """`sum` is the released total itself, so that `training.clip_norm` limits its gradient."""
    inference: Literal["mean", "samples"] = "mean"
    """The score of retrieval: the cosine of the means, or the match probability over samples. All
    images share one noise, and all captions share one."""


class PCME(Method):
    """Gaussian embeddings, matched by sampling."""

    title = "PCME"
    paper = "Chun et al., CVPR 2021"
    Settings = PCMESettings
    noise: Tensor

    def __init__(
        self, settings: PCMESettings, vocabulary: AnyVocabulary, feature_width: int
    ) -> None:
        super().__init__(settings, vocabulary, feature_width)
        self.settings = settings
        self.image, self.text = gaussian_towers(settings, vocabulary, feature_width)
        self.scale = PositiveScalar(settings.scale)
        self.shift = nn.Parameter(torch.tensor(settings.shift))
        fixed = torch.Generator().manual_seed(0)
        noise = torch.randn(2, settings.samples, settings.size, generator=fixed)
        self.register_buffer("noise", noise)

    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        if self.settings.inference == "mean":
            return cosine(images.vectors, texts.vectors)
        image_samples = samples(*gaussian(images), self.noise[0])
        text_samples = samples(*gaussian(texts), self.noise[1])
        rows_at_once = max(1, _DISTANCES_AT_ONCE // (len(text_samples) * self.settings.samples**2))
        return torch.cat(
            [
                log_mean_probability(self._logits(block, text_samples))
                for block in image_samples.split(rows_at_once)
            ]
        )

    def products(self, side: str, beta: float | None = None) -> ProductForm | None:
        if self.settings.inference == "mean" or beta is not None:
            return super().products(side, beta)
        item, query = self.noise.cpu() if side == "images" else self.noise.cpu().flip(0)
        rows = partial(_exact_samples, item)
        return ProductForm(
            partial(_sample_query, self, query),
            rows,
            lambda items: rows(items).double().square().sum(2) / -2,
        )

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        # One operation on both sides takes a GPU less time than two.
        sides = zip(gaussian(images), gaussian(texts), strict=True)
        mean, log_variance = map(torch.cat, sides)
        noise = torch.randn(len(mean), self.settings.samples, mean.shape[1], device=mean.device)
        drawn = samples(mean, log_variance, noise)
        image_samples, text_samples = drawn.split([len(images), len(texts)])
        match = positive_pairs(image_samples, batch.image_index)
        pairs = (match,) if batch.left_out is None else (match, batch.left_out)
        settings, n_terms = self.settings, 2 * match.numel()

        def probabilities(rows: Tensor, *pairs: Tensor) -> Tensor:
            return soft_contrastive(self._logits(rows, text_samples), *pairs)[None]

        def spread() -> Tensor:
            """The uniformity of random samples without replacement."""
            every = drawn.flatten(0, 1)
            order = torch.randperm(len(every), device=every.device)
            return uniformity(every[order[:_SAMPLES_COMPARED]])

        means = {"match": share_rows(probabilities, image_samples, *pairs).mean()} | weighted(
            kl=(settings.kl_weight / n_terms, lambda: kl_to_standard(mean, log_variance).sum()),
            uniformity=(settings.uniformity_weight / n_terms, spread),
        )
        if settings.reduction == "mean":
            return means
        return {name: n_terms * term for name, term in means.items()}

    def _logits(self, images: Tensor, texts: Tensor) -> Tensor:
        """Samples `(n, J, D)`, `(m, J, D)` -> `(n, m, J * J)`."""
        return self.shift - self.scale() * pair_distances(images, texts).flatten(2)


def _exact_samples(noise: Tensor, items: Embeddings) -> Tensor:
    """`(n, J, D)` in the type of the embeddings. A mean and its noise may cancel each other, which
    is why the sum is made in float64."""
    mean, log_variance = gaussian(items)
    exact = samples(mean.double(), log_variance.double(), noise.double())
    return exact.to(items.vectors.dtype)


def _sample_query(method: PCME, noise: Tensor, query: Embeddings, longest: float) -> ProductQuery:
    """`x . y - |x|^2 / 2 - |y|^2 / 2 = -|x - y|^2 / 2`, where the offset has the item's part."""
    vectors = _exact_samples(noise, query)[0]
    half_squares = ((1 - ROUNDED) * vectors.square().sum(1, keepdim=True) / 2).float()
    scale, shift = method.scale().item(), method.shift.item()

    def reduce(products: Tensor, mask: Tensor | None) -> Tensor:
        distances = products.sub_(half_squares).mul_(-2).clamp_(min=0).sqrt_()
        return log_mean_probability((shift - scale * distances).flatten(0, 1).T)

    farthest = longest + float(vectors.norm(dim=1).max())
    return ProductQuery(vectors, reduce, 1 + abs(shift) + 2 * scale * farthest)
