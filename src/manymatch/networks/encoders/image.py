"""The image encoder: local features of regions, cells or pixels, and a global feature."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator
from torch import Tensor, nn

from manymatch.batch.padding import PaddedRows
from manymatch.config.preset import Count, Probability
from manymatch.config.strict import Strict
from manymatch.networks.encoders.cnn import CNN, CNNSettings
from manymatch.networks.encoders.encoding import Encoding
from manymatch.networks.encoders.regions import RegionEncoder, ResidualEncoder
from manymatch.networks.layers.dropout import Dropout
from manymatch.networks.layers.linear import glorot_linear, precise
from manymatch.networks.pooling.global_pooling import MaxPooling, MeanPooling
from manymatch.networks.pooling.masked import zeroed


class ImageSettings(Strict):
    """How an image's features `(R, F)` become local features and a global feature of size D.

    `raw`: the local features are the features themselves, the global feature is one layer over
    their mean (PVSE, PCME).
    `linear`: local is one layer over each (a 1 x 1 convolution of a map), global their mean.
    `residual`: local is `MLP(h) + h` over that layer, global the maximum (DivE on regions).
    `regions`: local is `MLP(x) + Linear(x)`, global the maximum (VSE-infinity, CORA).
    """

    encoder: Literal["raw", "linear", "residual", "regions"] = "residual"
    dropout: Probability = 0.0
    """Dropout of the features' elements; with `residual`, of the local features."""
    position_size: Count | None = None
    """`regions`: size of the code of the regions' order (CORA: 16)."""
    attention_heads: Count | None = None
    """`regions`: heads of one self-attention layer over the regions (CORA: 16)."""
    cnn: CNNSettings | None = None
    """A network that makes the features of pixels and is fine-tuned."""

    @model_validator(mode="after")
    def _options_of_regions(self) -> ImageSettings:
        for key in ("position_size", "attention_heads"):
            if self.encoder != "regions" and getattr(self, key) is not None:
                raise ValueError(f"{key} is an option of the encoder 'regions' alone")
        return self


class ImageEncoder(nn.Module):
    """Local features, which are pooled and projected to the global feature.

    Args:
        settings: which local features, and of what.
        feature_width: F; the width of the CNN's map takes its place.
        size: D.

    Attributes:
        local_size: W, the size of local features.
    """

    def __init__(self, settings: ImageSettings, feature_width: int, size: int) -> None:
        super().__init__()
        cnn = None if settings.cnn is None else CNN(settings.cnn)
        width, dropout = feature_width if cnn is None else cnn.width, settings.dropout
        project: nn.Module = nn.Identity()
        if settings.encoder == "raw":
            local: nn.Module = EachRegion(Dropout(dropout))
            project = glorot_linear(width, size)
        elif settings.encoder == "linear":
            local = EachRegion(nn.Sequential(Dropout(dropout), glorot_linear(width, size)))
        elif settings.encoder == "residual":
            local = ResidualEncoder(width, size, dropout)
        else:
            places, heads = settings.position_size, settings.attention_heads
            local = RegionEncoder(width, size, dropout, places, heads)
        self.local, self.local_size = local, width if settings.encoder == "raw" else size
        self.pool = MeanPooling() if settings.encoder in ("raw", "linear") else MaxPooling()
        self.project, self.cnn = project, cnn

    def forward(self, features: Tensor, padding: PaddedRows) -> Encoding:
        """`features (n, R, F)` -> local `(n, R, W)`, globals `(n, D)`.

        With a CNN the features are R = S * S pixels, and the local features are the cells of its
        map.
        """
        if self.cnn is not None:
            features, padding = self.cnn(features)
        local = self.local(features, padding)

        def globals_() -> Tensor:
            return precise(self.project, self.pool(local, padding).squeeze(1))

        return Encoding(local, padding, globals_)


class EachRegion(nn.Module):
    """A layer over each region by itself: `(n, R, F)` -> `(n, R, W)`, zero where padded."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, features: Tensor, padding: PaddedRows) -> Tensor:
        return zeroed(self.layer(features), padding)
