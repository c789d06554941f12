"""PCME++: Gaussians whose distance has a closed form, and labels for false negatives.

Chun, Improved Probabilistic Image-Text Representations, ICLR 2024.

Two heads with generalised pooling predict the mean, which is L2-normalised, and the log variance of
each image and caption. The distance of two Gaussians is the squared distance of their means plus
the sum of all variances. No sample is drawn. A pair matches with the probability
sigmoid(-a d + b). Each pair of a batch is classified by itself. A second loss of the same form
also takes pairs as matches that are nearer than a true match (pseudo-positives). A part of the
images of a batch is mixed with another image; the labels of a mixed image are the shares of both
images. The uncertainty of an image or caption is the sum of its variances.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.distributions import Beta

from manymatch.batch.batch import Batch
from manymatch.batch.padding import Padding
from manymatch.batch.shared_rows import share_rows
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import NonNegative, Positive, Probability
from manymatch.config.strict import Grouped
from manymatch.losses.contrastive import positive_pairs, transposed
from manymatch.losses.probabilistic import match_entropy, pseudo_positives
from manymatch.methods.shared.embeddings import UNSCORED
from manymatch.methods.shared.gaussian_tower import PositiveScalar, gaussian
from manymatch.methods.shared.matching import weighted
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.methods.shared.products import ProductForm, ProductQuery, largest_product
from manymatch.networks.encoders.encoding import check_local_sizes
from manymatch.networks.encoders.image import ImageEncoder, ImageSettings
from manymatch.networks.encoders.text import TextSettings, text_encoder
from manymatch.networks.layers.linear import glorot_linear
from manymatch.networks.pooling.gaussian import kl_to_standard
from manymatch.networks.pooling.global_pooling import GPO
from manymatch.similarities.gaussians import closed_form_distance
from manymatch.similarities.vectors import full_precision, unit


class PCMEPPSettings(Grouped):
    """The defaults are the released code's."""

    size: Annotated[int, Field(ge=2, multiple_of=2)] = 1024
    image: ImageSettings = ImageSettings(encoder="regions")
    text: TextSettings = TextSettings(local="states")
    log_variance: float = 0.0
    """Approximate log variance at the start."""
    scale: Positive = 5.0
    """First value of the paper's a, which is learned."""
    shift: float = 5.0
    """First value of the paper's b, which is learned."""
    pseudo_weight: NonNegative = 0.1
    """The paper's alpha, the weight of the loss with pseudo-positives."""
    vib_weight: NonNegative = 0.0001
    """The paper's beta, the weight of the KL divergence from the standard normal, which is a mean
    over samples and dimensions."""
    label_smoothing: Annotated[float, Field(ge=0, lt=0.5)] = 0.0001
    """A label is no less than this number, and no more than 1 minus this number."""
    mixing: Probability = 0.25
    """Share of the training images that are mixed with another image of the same process and of the
    same part of a batch (`training.accumulate`)."""
    mixing_alpha: Positive = 2.0
    """The weight of an image is drawn from Beta(alpha, alpha)."""


@dataclass(frozen=True)
class MixedEmbeddings(Embeddings):
    """The embeddings of images of which some are mixed with another image.

    Args:
        own_share: `(n,)`, the image's own share in [0, 1]; the rest is the partner's.
        partner: `(n,)` int64, the partner's row minus the image's row.
    """

    own_share: Tensor | None = field(default=None, metadata=UNSCORED)
    partner: Tensor | None = field(default=None, metadata=UNSCORED)


class PCMEPP(Method):
    """Gaussian embeddings, matched by their closed-form distance."""

    title = "PCME++"
    paper = "Chun, ICLR 2024"
    Settings = PCMEPPSettings

    def __init__(
        self, settings: PCMEPPSettings, vocabulary: AnyVocabulary, feature_width: int
    ) -> None:
        super().__init__(settings, vocabulary, feature_width)
        self.settings = settings
        size, start = settings.size, settings.log_variance
        self.image = PooledGaussian(ImageEncoder(settings.image, feature_width, size), size, start)
        self.text = PooledGaussian(text_encoder(settings.text, vocabulary, size), size, start)
        check_local_sizes("pcmepp", size, self.image.encoder, self.text.encoder)
        self.scale = PositiveScalar(settings.scale)
        self.shift = nn.Parameter(torch.tensor(settings.shift))

    def encode_images(self, batch: Batch) -> Embeddings:
        settings, features, padding = self.settings, batch.features, batch.region_padding
        if not (self.training and settings.mixing):
            return Embeddings(*self.image(features, padding))
        encoder, mix = self.image.encoder, partial(mixed, rate=settings.mixing)
        mix = partial(mix, alpha=settings.mixing_alpha)
        rows = torch.arange(len(features), device=features.device)
        if encoder.pixels is None:
            features, own_share = mix(features, padding.mask)
            vectors, log_variance = self.image(features, padding)
        else:
            with encoder.pixels.mixed_by(mix) as shares:
                vectors, log_variance = self.image(features, padding)
            (own_share,) = shares
        return MixedEmbeddings(
            vectors, log_variance, own_share=own_share, partner=rows.flip(0) - rows
        )

    def encode_texts(self, batch: Batch) -> Embeddings:
        return Embeddings(*self.text(batch.words, batch.word_padding))

    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        return -closed_form_distance(*gaussian(images), *gaussian(texts))

    def products(self, side: str, beta: float | None = None) -> ProductForm | None:
        if beta is not None:
            return super().products(side, beta)
        return ProductForm(_query, offsets=lambda items: _spread(items)[:, None] / -2)

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        settings, read = self.settings, gaussian(texts)
        distances = share_rows(
            lambda mean, log_variance: closed_form_distance(mean, log_variance, *read),
            *gaussian(images),
        )
        logits = self.shift - self.scale() * distances
        labels = self._labels(images, batch.image_index).to(logits.dtype)
        left_out = _left_out(images, batch.left_out)

        def with_pseudo_positives() -> Tensor:
            of_images = match_entropy(logits, pseudo_positives(logits, labels), left_out)
            of_texts = pseudo_positives(logits.T, labels.T)
            return of_images + match_entropy(logits.T, of_texts, transposed(left_out))

        # Both directions have the same matching loss, hence the 2.
        return weighted(
            match=(2.0, lambda: match_entropy(logits, labels, left_out)),
            pseudo=(settings.pseudo_weight, with_pseudo_positives),
            vib=(settings.vib_weight, lambda: _vib(images) + _vib(texts)),
        )

    def _labels(self, images: Embeddings, image_index: Tensor) -> Tensor:
        """`(n, m)`: the share of the image (row) to which the caption (column) belongs."""
        labels = positive_pairs(images.vectors, image_index).float()
        if isinstance(images, MixedEmbeddings):
            own_share = images.part("own_share").detach()[:, None]
            rows = torch.arange(len(images), device=labels.device)
            partners = labels.index_select(0, rows + images.part("partner"))
            labels = own_share * labels + (1 - own_share) * partners
        least = self.settings.label_smoothing
        return least + (1 - 2 * least) * labels


class PooledGaussian(nn.Module):
    """An encoder, and two heads with generalised pooling over its local features.

    The log variance has a linear layer of its own before the pooling.

    Args:
        encoder: `(rows, padding) -> Encoding`, whose local features have size D.
        size: D.
        log_variance: approximate log variance at the start.
    """

    def __init__(self, encoder: nn.Module, size: int, log_variance: float) -> None:
        super().__init__()
        self.encoder: Any = encoder
        self.log_variance = glorot_linear(size, size)
        nn.init.constant_(self.log_variance.bias, log_variance)
        self.pool_mean, self.pool_log_variance = GPO(), GPO()

    def forward(self, rows: Tensor, padding: Padding) -> tuple[Tensor, Tensor]:
        """Features `(n, R, F)` or word ids `(n, R)`, and their padding -> means `(n, 1, D)`,
        L2-normalised, and log variances `(n, D)`."""
        encoded = self.encoder(rows, padding)
        local, padding = encoded.local, encoded.padding
        log_variance = self.pool_log_variance(self.log_variance(local), padding)[:, 0]
        return unit(self.pool_mean(local, padding)), full_precision(log_variance)


def mixed(
    features: Tensor, mask: Tensor, rate: float, alpha: float, side: int | None = None
) -> tuple[Tensor, Tensor]:
    """Images of which some are mixed with a partner: image i of n with image n - 1 - i.

    A weight is drawn from Beta(alpha, alpha). Half of the mixed images are Mixup's: each row is the
    weighted mean of the rows of both images. The other half are CutMix's: each row is the image's
    own with the drawn probability, else the partner's. Rows that one of the two images lacks stay
    as they are. Of pixels, CutMix takes a square of the partner, whose centre is anywhere in the
    picture, and whose part outside is cut off.

    Args:
        features: `(n, R, F)`.
        mask: `(n, R)` bool of the real rows.
        rate: the expected share of the images that are mixed.
        side: of pixels, whose R = side * side rows are a picture; None: rows have no places.

    Returns:
        The features, and the own share of each image `(n,)`: the mean weight of its real rows.

    References:
        Zhang et al., mixup: Beyond Empirical Risk Minimization, ICLR 2018; Yun et al., CutMix,
        ICCV 2019; Chun, PCME++, ICLR 2024, section 2.4.
    """
    count, device = len(features), features.device
    alphas = torch.full((count, 1), alpha, device=device)
    drawn = Beta(alphas, alphas, validate_args=False).sample()
    is_mixed, is_cut = torch.rand(2, count, 1, device=device).unbind()
    own = torch.rand(mask.shape, device=device) < drawn if side is None else _around(drawn, side)
    weight = own.float().where(is_cut < 0.5, drawn)
    weight = weight.where((is_mixed < rate) & mask & mask.flip(0), 1.0)
    share = (weight * mask).sum(1) / mask.sum(1)
    return torch.lerp(features.flip(0), features, weight[:, :, None].to(features.dtype)), share


def _around(shares: Tensor, side: int) -> Tensor:
    """`(n, side * side)`: the pixels outside of squares, which leave `shares (n, 1)` of images."""
    half = side / 2 * (1 - shares).sqrt()
    centres = side * torch.rand(2, len(shares), 1, device=shares.device)
    at = torch.arange(side, device=shares.device) + 0.5
    rows, columns = (at - centres).abs() < half
    return ~(rows[:, :, None] & columns[:, None]).flatten(1)


def _left_out(images: Embeddings, left_out: Tensor | None) -> Tensor | None:
    """A caption is left out of the pairs of a mixed image if it is left out of one of the two
    images."""
    if left_out is None or not isinstance(images, MixedEmbeddings):
        return left_out
    rows = torch.arange(len(images), device=left_out.device)
    return left_out | left_out.index_select(0, rows + images.part("partner"))


def _vib(embeddings: Embeddings) -> Tensor:
    return kl_to_standard(*gaussian(embeddings)).mean() / embeddings.vectors.shape[2]


def _spread(embeddings: Embeddings) -> Tensor:
    """`(n,)`: what an item adds to all of its distances, `||mu||^2 + ||sigma^2||_1`."""
    mean, log_variance = (part.double() for part in gaussian(embeddings))
    return (mean.square() + log_variance.exp()).sum(1)


def _query(query: Embeddings, longest: float) -> ProductQuery:
    """`-d = 2 (mu . mu' - s' / 2) - s` with the query's s. The offset of an item is `-s' / 2`."""
    vectors, spread = query.vectors[0], float(_spread(query))

    def reduce(products: Tensor, mask: Tensor | None) -> Tensor:
        return products[0, 0].mul_(2).sub_(spread)

    return ProductQuery(vectors, reduce, spread + 2 * largest_product(vectors, longest))
