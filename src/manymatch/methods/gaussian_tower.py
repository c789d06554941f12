"""What PCME and MSRM share: each sample of either modality becomes a Gaussian."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from torch import Tensor, nn

from manymatch.config.grouped import Grouped
from manymatch.config.preset import Count
from manymatch.methods.base import Embeddings
from manymatch.methods.image_encoder import ImageSettings, image_encoder
from manymatch.methods.text_encoder import TextSettings, text_encoder
from manymatch.pooling.gaussian import GaussianHead
from manymatch.text.wordpieces import AnyVocabulary


class GaussianSettings(Grouped):
    """Encoders and heads; the defaults are PCME's."""

    size: Annotated[int, Field(ge=2, multiple_of=2)] = 1024
    image: ImageSettings = ImageSettings(encoder="raw")
    text: TextSettings = TextSettings(local="vectors", directions="concatenate")
    hidden: Count | None = None
    """Width inside the heads' attention; null: half the local features' width."""
    log_variance: float = 0.0
    """Where the log variances start, about."""


class GaussianTower(nn.Module):
    """Encoder `(rows, mask) -> Encoding`, then a Gaussian head -> `Embeddings`."""

    def __init__(self, encoder: nn.Module, head: GaussianHead) -> None:
        super().__init__()
        self.encoder: Any = encoder
        self.head = head

    def forward(self, rows: Tensor, mask: Tensor) -> Embeddings:
        """Features `(n, R, F)` or word ids `(n, R)` and their mask -> means as `vectors
        (n, 1, D)`, L2-normalised, and `log_variance (n, D)`."""
        local, mask, globals_ = self.encoder(rows, mask)
        found = self.head(local, mask, globals_)
        return Embeddings(
            vectors=found.mean[:, None],
            log_variance=found.log_variance,
            attention=None if self.training else found.attention,
        )


def gaussian_towers(
    settings: GaussianSettings, vocabulary: AnyVocabulary, feature_width: int
) -> tuple[GaussianTower, GaussianTower]:
    """That of images and that of captions."""
    encoders = (
        image_encoder(settings.image, feature_width, settings.size),
        text_encoder(settings.text, vocabulary, settings.size),
    )
    image, text = (
        GaussianTower(
            encoder,
            GaussianHead(encoder.local_size, settings.size, settings.hidden, settings.log_variance),
        )
        for encoder in encoders
    )
    return image, text
