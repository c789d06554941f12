"""Image encoders: local features of regions, cells or pixels, and a global feature."""

from typing import Literal, Self

from pydantic import model_validator
from torch import Tensor, nn

from manymatch.batch.padding import PaddedRows
from manymatch.config.preset import Count, Probability
from manymatch.config.strict import Strict
from manymatch.networks.encoders.cnn import CNN, CNNSettings
from manymatch.networks.encoders.encoding import Encoding
from manymatch.networks.encoders.hub_image import HubImageEncoder, HubImageSettings
from manymatch.networks.encoders.pixels import PixelNetwork
from manymatch.networks.layers.batch_norm import SharedBatchNorm
from manymatch.networks.layers.dropout import Dropout
from manymatch.networks.layers.linear import glorot_linear, precise
from manymatch.networks.layers.position_code import sine_code
from manymatch.networks.layers.segments import gathered, scattered
from manymatch.networks.pooling.global_pooling import MaxPooling, MeanPooling, zeroed


class PixelNetworks(Strict):
    """The network that makes the features of pixels, if there is one."""

    cnn: CNNSettings | None = None
    """A ResNet, which is fine-tuned."""
    backbone: HubImageSettings | None = None
    """A vision model of transformers."""

    @model_validator(mode="after")
    def _one_network(self) -> Self:
        if self.cnn is not None and self.backbone is not None:
            raise ValueError("images have a cnn and a backbone. Leave one of the two out")
        return self

    @property
    def reads_pixels(self) -> bool:
        """Whether there is a network."""
        return self.cnn is not None or self.backbone is not None


def pixel_networks(settings: PixelNetworks) -> tuple[CNN | None, HubImageEncoder | None]:
    """The network of pixels in the place of its settings; None for the other one."""
    return (
        None if settings.cnn is None else CNN(settings.cnn),
        None if settings.backbone is None else HubImageEncoder(settings.backbone),
    )


class ImageSettings(PixelNetworks):
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

    @model_validator(mode="after")
    def _options_of_regions(self) -> Self:
        for key in ("position_size", "attention_heads"):
            if self.encoder != "regions" and getattr(self, key) is not None:
                raise ValueError(f"{key} is an option of the encoder 'regions' alone")
        return self


class ImageEncoder(nn.Module):
    """Local features, which are pooled and projected to the global feature.

    Args:
        settings: which local features, and of what.
        feature_width: F; the width of a network of pixels takes its place.
        size: D.

    Attributes:
        local_size: W, the size of local features.
    """

    def __init__(self, settings: ImageSettings, feature_width: int, size: int) -> None:
        super().__init__()
        cnn, backbone = pixel_networks(settings)
        width = next((one.width for one in (cnn, backbone) if one is not None), feature_width)
        kind, self.local_size = settings.encoder, width if settings.encoder == "raw" else size
        project: nn.Module = nn.Identity()
        if kind == "raw":
            local: nn.Module = EachRegion(Dropout(settings.dropout))
            project = glorot_linear(width, size)
        elif kind == "linear":
            layer = glorot_linear(width, size)
            local = EachRegion(nn.Sequential(Dropout(settings.dropout), layer))
        else:
            encoders = {"residual": ResidualEncoder, "regions": RegionEncoder}
            local = encoders[kind](settings, width, size)
        self.local = local
        self.pool = MeanPooling() if kind in ("raw", "linear") else MaxPooling()
        self.project, self.cnn, self.backbone = project, cnn, backbone

    @property
    def pixels(self) -> PixelNetwork | None:
        """The network of pixels, if there is one."""
        return self.backbone if self.cnn is None else self.cnn

    def forward(self, features: Tensor, padding: PaddedRows) -> Encoding:
        """`features (n, R, F)` -> local `(n, R, W)`, globals `(n, D)`.

        With a network of pixels the features are R = S * S pixels, and the local features are those
        of the network's cells or patches.
        """
        if self.pixels is not None:
            features, padding = self.pixels(features)
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


def _mlp(width: int, size: int) -> nn.Sequential:
    """`F -> D/2 -> BatchNorm -> ReLU -> D`. Batch statistics count real regions only."""
    hidden = size // 2
    return nn.Sequential(
        nn.Linear(width, hidden), SharedBatchNorm(hidden), nn.ReLU(), nn.Linear(hidden, size)
    )


class RegionEncoder(nn.Module):
    """`MLP(x) + Linear(x)` for each region, where `MLP = F -> D/2 -> BatchNorm -> ReLU -> D`.

    With `position_size`, the sine code of the region's position in the list is added, after Linear
    and LayerNorm. With `attention_heads`, one self-attention and feed-forward residual layer over
    the regions of an image follows. Batch statistics count real regions only.

    Args:
        settings: the options; the dropout is that of the features.
        width: F, size of the features.
        size: D.

    References:
        Chen et al., VSE-infinity, CVPR 2021; Pham et al., CORA, CVPR 2024.
    """

    def __init__(self, settings: ImageSettings, width: int, size: int) -> None:
        super().__init__()
        dropout, heads = settings.dropout, settings.attention_heads
        self.dropout = Dropout(dropout)
        self.linear, self.widen = glorot_linear(width, size), _mlp(width, size)
        self.position = OrderCode(settings.position_size, size) if settings.position_size else None
        self.context = (
            nn.TransformerEncoderLayer(size, heads, 2 * size, dropout, batch_first=True)
            if heads
            else None
        )

    def forward(self, features: Tensor, padding: PaddedRows) -> Tensor:
        """`features (n, R, F)` -> `(n, R, D)`, zero where padded."""
        mask, real = padding.mask, self.dropout(gathered(features, padding))
        local = scattered(self.linear(real) + self.widen(real), padding)
        if self.position is not None:
            local = local + self.position(mask.shape[1])
        if self.context is not None:
            hidden = None if padding.all_real else ~mask
            local = self.context(local, src_key_padding_mask=hidden)
        return zeroed(local, padding)


class OrderCode(nn.Module):
    """The sine code of a region's position in the list, through Linear and LayerNorm to size D."""

    def __init__(self, code_size: int, size: int) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(code_size, size), nn.LayerNorm(size)

    def forward(self, length: int) -> Tensor:
        """`(length, D)`."""
        weight = self.linear.weight
        code = sine_code(length, weight.shape[1], weight.device, weight.dtype)
        return self.norm(precise(self.linear, code))


class ResidualEncoder(nn.Module):
    """`MLP(h) + h` for each region, `h = Linear(x)`, `MLP = D -> D/2 -> BatchNorm -> ReLU -> D`.

    Batch statistics count real regions only.

    Args:
        settings: the dropout of the output, as in the released code; the paper does not state its
            position.
        width: F, size of the features.
        size: D.

    References:
        Kim, Kim and Kwak, DivE, CVPR 2023, section 3.2.
    """

    def __init__(self, settings: ImageSettings, width: int, size: int) -> None:
        super().__init__()
        self.dropout = Dropout(settings.dropout)
        self.linear, self.widen = glorot_linear(width, size), _mlp(size, size)

    def forward(self, features: Tensor, padding: PaddedRows) -> Tensor:
        """`features (n, R, F)` -> `(n, R, D)`, zero where padded."""
        # In half precision this layer alone turns the gradients of the hardest negatives away.
        narrow = precise(self.linear, gathered(features, padding))
        return scattered(self.dropout(self.widen(narrow) + narrow), padding)
