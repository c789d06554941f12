"""The region encoders: VSE-infinity's and CORA's, and that of DivE and MaxMatch."""

from __future__ import annotations

from torch import Tensor, nn

from manymatch.batch.padding import PaddedRows
from manymatch.networks.layers.dropout import Dropout
from manymatch.networks.layers.linear import glorot_linear, precise
from manymatch.networks.layers.position_code import sine_code
from manymatch.networks.layers.segments import gathered, scattered
from manymatch.networks.pooling.masked import zeroed


class RegionEncoder(nn.Module):
    """`MLP(x) + Linear(x)` for each region, `MLP = F -> D/2 -> BatchNorm -> ReLU -> D`.

    Batch statistics count real regions only.

    Args:
        width: F, size of the features.
        size: D.
        dropout: of the features.
        position_size: size of a sine code of the region's position, which is added after Linear
            and LayerNorm (CORA: 16); None: no code.
        attention_heads: heads of one self-attention and feed-forward residual layer over the
            regions of an image (CORA: 16); None: no such layer.

    References:
        Chen et al., VSE-infinity, CVPR 2021; Pham et al., CORA, CVPR 2024.
    """

    def __init__(
        self,
        width: int,
        size: int,
        dropout: float = 0.0,
        position_size: int | None = None,
        attention_heads: int | None = None,
    ) -> None:
        super().__init__()
        hidden = size // 2
        self.dropout = Dropout(dropout)
        self.linear = glorot_linear(width, size)
        self.widen = nn.Sequential(
            nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, size)
        )
        self.position = OrderCode(position_size, size) if position_size else None
        self.context = (
            nn.TransformerEncoderLayer(size, attention_heads, 2 * size, dropout, batch_first=True)
            if attention_heads
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
        width: F, size of the features.
        size: D.
        dropout: of the output, as in the released code; the paper does not state the position.

    References:
        Kim, Kim and Kwak, DivE, CVPR 2023, section 3.2.
    """

    def __init__(self, width: int, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        hidden = size // 2
        self.dropout = Dropout(dropout)
        self.linear = glorot_linear(width, size)
        self.widen = nn.Sequential(
            nn.Linear(size, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, size)
        )

    def forward(self, features: Tensor, padding: PaddedRows) -> Tensor:
        """`features (n, R, F)` -> `(n, R, D)`, zero where padded."""
        # In half precision this layer alone turns the gradients of the hardest negatives away.
        narrow = precise(self.linear, gathered(features, padding))
        return scattered(self.dropout(self.widen(narrow) + narrow), padding)
