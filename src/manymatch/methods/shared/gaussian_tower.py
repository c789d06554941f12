"""The towers of PCME and MSRM: an encoder, and a head that predicts a Gaussian."""

import math
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn

from manymatch.batch.padding import Padding
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Count
from manymatch.config.strict import Grouped
from manymatch.methods.shared.method import Embeddings
from manymatch.networks.encoders.image import ImageEncoder, ImageSettings
from manymatch.networks.encoders.text import TextSettings, text_encoder
from manymatch.networks.pooling.gaussian import GaussianHead


class GaussianSettings(Grouped):
    """Encoders and heads; the defaults are PCME's."""

    size: Annotated[int, Field(ge=2, multiple_of=2)] = 1024
    image: ImageSettings = ImageSettings(encoder="raw")
    text: TextSettings = TextSettings(local="vectors", directions="concatenate")
    hidden: Count | None = None
    """Width inside the heads' attention; null: half the width of the local features."""
    log_variance: float = 0.0
    """Approximate log variance at the start."""
    equal_variances: bool = False
    """Whether every log variance starts at `log_variance` exactly, instead of near it."""


class GaussianTower(nn.Module):
    """Encoder `(rows, padding) -> Encoding`, then a Gaussian head -> `Embeddings`."""

    def __init__(self, encoder: nn.Module, head: GaussianHead) -> None:
        super().__init__()
        self.encoder: Any = encoder
        self.head = head

    def forward(self, rows: Tensor, padding: Padding) -> Embeddings:
        """Features `(n, R, F)` or word ids `(n, R)`, and their padding -> the means as
        `vectors (n, 1, D)`, L2-normalised, and `log_variance (n, D)`."""
        encoded = self.encoder(rows, padding)
        gaussian = self.head(encoded.local, encoded.padding, encoded.globals())
        return Embeddings(
            vectors=gaussian.mean[:, None],
            log_variance=gaussian.log_variance,
            attention=None if self.training else gaussian.attention,
        )


def gaussian_towers(
    settings: GaussianSettings, vocabulary: AnyVocabulary, feature_width: int
) -> tuple[GaussianTower, GaussianTower]:
    """The tower of images and the tower of captions."""
    encoders = (
        ImageEncoder(settings.image, feature_width, settings.size),
        text_encoder(settings.text, vocabulary, settings.size),
    )
    image, text = (
        GaussianTower(
            encoder,
            GaussianHead(
                encoder.local_size,
                settings.size,
                settings.hidden,
                settings.log_variance,
                settings.equal_variances,
            ),
        )
        for encoder in encoders
    )
    return image, text


def gaussian(embeddings: Embeddings) -> tuple[Tensor, Tensor]:
    """The means `(n, D)` and the log variances `(n, D)`."""
    return embeddings.vectors.squeeze(1), embeddings.part("log_variance")


class PositiveScalar(nn.Module):
    """The number `exp(log)` with one parameter `log`; it starts at `value`. A call returns it."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor(math.log(value)))

    def forward(self) -> Tensor:
        """`()`, > 0."""
        return self.log.exp()
