"""Image encoders by name: from regions, grid cells or pixels to local and global features."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator
from torch import Tensor, nn

from manymatch.config.preset import Count, Probability
from manymatch.config.strict import Strict
from manymatch.encoders.cnn import CNN, CNNSettings
from manymatch.encoders.encoding import Encoding
from manymatch.encoders.regions import RegionEncoder
from manymatch.encoders.residual import ResidualEncoder
from manymatch.layers.glorot import glorot_linear
from manymatch.pooling.masked import MaxPooling, MeanPooling


class ImageSettings(Strict):
    """How an image's features `(R, F)` become local features and a global one of size D.

    `raw`: local are the features themselves, global is one layer over their mean (PVSE, PCME).
    `linear`: local is one layer over each (a 1 x 1 convolution of a map), global their mean.
    `residual`: `MLP(h) + h` over that layer, global the maximum (DivE on regions).
    `regions`: `MLP(x) + Linear(x)`, global the maximum (VSE-infinity, CORA).
    """

    encoder: Literal["raw", "linear", "residual", "regions"] = "residual"
    dropout: Probability = 0.0
    """Of the features' elements; of `residual`, of the local features."""
    position_size: Count | None = None
    """`regions`: size of the code of the regions' order (CORA: 16)."""
    attention_heads: Count | None = None
    """`regions`: of one self-attention layer over the regions (CORA: 16)."""
    cnn: CNNSettings | None = None
    """A network whose map is the features, which are then made of pixels and fine-tuned."""

    @model_validator(mode="after")
    def _options_of_regions(self) -> ImageSettings:
        for key in ("position_size", "attention_heads"):
            if self.encoder != "regions" and getattr(self, key) is not None:
                raise ValueError(f"{key} is an option of the encoder 'regions' alone")
        return self


class ImageEncoder(nn.Module):
    """Local features, pooled and projected to the global one; perhaps after a `cnn`.

    `local_size` is W, the size of local features.
    """

    def __init__(self, local: nn.Module, local_size: int, pool: nn.Module, project: nn.Module):
        super().__init__()
        self.local, self.local_size, self.pool, self.project = local, local_size, pool, project
        self.cnn: CNN | None = None

    def forward(self, features: Tensor, mask: Tensor) -> Encoding:
        """`features (n, R, F)`, `mask (n, R)` -> local `(n, R, W)`, globals `(n, D)`.

        With a CNN `features` are the R = S * S pixels, and out come the cells of its map.
        """
        if self.cnn is not None:
            features, mask = self.cnn(features, mask)
        local = self.local(features, mask)
        return Encoding(local, mask, self.project(self.pool(local, mask)[:, 0]))


def image_encoder(settings: ImageSettings, feature_width: int, size: int) -> ImageEncoder:
    """The encoder that `settings` name, for features of `feature_width`, with D = `size`."""
    if settings.cnn is None:
        return _after_features(settings, feature_width, size)
    cnn = CNN(settings.cnn)
    encoder = _after_features(settings, cnn.width, size)
    encoder.cnn = cnn
    return encoder


def _after_features(settings: ImageSettings, feature_width: int, size: int) -> ImageEncoder:
    dropout = settings.dropout
    if settings.encoder == "raw":
        project = glorot_linear(feature_width, size)
        return ImageEncoder(_Each(nn.Dropout(dropout)), feature_width, MeanPooling(), project)
    if settings.encoder == "linear":
        layer = nn.Sequential(nn.Dropout(dropout), glorot_linear(feature_width, size))
        return ImageEncoder(_Each(layer), size, MeanPooling(), nn.Identity())
    if settings.encoder == "residual":
        local: nn.Module = ResidualEncoder(feature_width, size, dropout)
    else:
        local = RegionEncoder(
            feature_width, size, dropout, settings.position_size, settings.attention_heads
        )
    return ImageEncoder(local, size, MaxPooling(), nn.Identity())


class _Each(nn.Module):
    """A layer over each region by itself: `(n, R, F)`, `(n, R)` -> `(n, R, W)`."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        return self.layer(features).masked_fill(~mask[:, :, None], 0.0)
