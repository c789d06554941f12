"""The region encoder of DivE and MaxMatch."""

from __future__ import annotations

from torch import Tensor, nn

from manymatch.batch.padding import PaddedRows
from manymatch.networks.layers.dropout import Dropout
from manymatch.networks.layers.glorot import glorot_linear
from manymatch.networks.layers.precise import precise
from manymatch.networks.layers.segments import gathered, scattered


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
