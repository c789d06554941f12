"""The settings of an image encoder, and the encoder that they describe."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from torch import nn

from manymatch.config.preset import Count, Probability
from manymatch.config.strict import Strict
from manymatch.networks.encoders.cnn import CNN, Backbone
from manymatch.networks.encoders.image import EachRegion, ImageEncoder
from manymatch.networks.encoders.regions import RegionEncoder, ResidualEncoder
from manymatch.networks.layers.dropout import Dropout
from manymatch.networks.layers.linear import glorot_linear
from manymatch.networks.pooling.global_pooling import MaxPooling, MeanPooling

Share = Annotated[float, Field(gt=0.0, le=1.0)]


class CNNSettings(Strict):
    """The arguments of `CNN`. A preset's `parameter_groups` freeze or slow the parameters whose
    name matches `cnn`."""

    backbone: Backbone = "resnet152"
    weights: str | None = None
    """A folder, file or hub name, as for the extraction of features with this backbone; null: the
    backbone's default; `random`: fresh weights."""
    crop: Count = 224
    """Side of the square that the network sees: in training a random square, mirrored half of the
    time, else the middle one. A crop as large as the image is the whole image."""
    crop_area: tuple[Share, Share] | None = None
    """The smallest and the largest share of the picture that a training crop covers: its size,
    shape and place are random, and the crop is resized. Null: squares of `crop` pixels."""
    random_crops: bool = True
    """False: training sees the middle squares, as tests do."""
    erasing: Probability = 0.0
    """The share of the training pictures in which a rectangle is erased (PCME: 0.2)."""
    fixed_statistics: bool = False
    """Batch norms keep their first statistics, in training too."""
    checkpointing: bool = False
    """Activations inside the network's stages are computed twice instead of kept: less memory."""

    @model_validator(mode="after")
    def _areas_in_order(self) -> CNNSettings:
        if self.crop_area is not None and self.crop_area[0] > self.crop_area[1]:
            raise ValueError("crop_area: the smallest share is first")
        if self.crop_area is not None and not self.random_crops:
            raise ValueError("crop_area: crops of random size, but random_crops is false")
        return self

    @model_validator(mode="after")
    def _statistics_once(self) -> CNNSettings:
        if self.checkpointing and not self.fixed_statistics:
            raise ValueError(
                "checkpointing needs fixed_statistics: batch norms would see each batch twice"
            )
        return self


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


def image_encoder(settings: ImageSettings, feature_width: int, size: int) -> ImageEncoder:
    """The encoder that `settings` describe, for features of `feature_width`, with D = `size`."""
    cnn = None if settings.cnn is None else CNN(**dict(settings.cnn))
    width, dropout = feature_width if cnn is None else cnn.width, settings.dropout
    if settings.encoder == "raw":
        project = glorot_linear(width, size)
        return ImageEncoder(EachRegion(Dropout(dropout)), width, MeanPooling(), project, cnn)
    if settings.encoder == "linear":
        layer = nn.Sequential(Dropout(dropout), glorot_linear(width, size))
        return ImageEncoder(EachRegion(layer), size, MeanPooling(), nn.Identity(), cnn)
    if settings.encoder == "residual":
        local: nn.Module = ResidualEncoder(width, size, dropout)
    else:
        local = RegionEncoder(
            width, size, dropout, settings.position_size, settings.attention_heads
        )
    return ImageEncoder(local, size, MaxPooling(), nn.Identity(), cnn)
