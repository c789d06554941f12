"""A plain transformer decoder over learned queries, for comparison with slot attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from manymatch.networks.pooling.masked import Mask, real_rows, zeroed
from manymatch.networks.pooling.prediction import (
    Given,
    GlobalResidual,
    SetModule,
    Sets,
    feed_forward,
)


class TransformerDecoder(SetModule):
    """K learned queries through T layers of self-attention, attention over the inputs and an MLP.

    Unlike in slot attention, the weights of each query are a softmax over the inputs, so that
    queries do not compete, and each layer has its own weights. First queries, output and MLP are
    the same.

    Args:
        width: W, size of the inputs.
        size: D, size of queries and elements; a multiple of `heads`.
        n_queries: K.
        layers: T.
        heads: number of heads of both attentions; divides `size`.
        dropout: of the output of both attentions, and inside the MLP.

    Raises:
        DataError: `heads` does not divide `size`.

    References:
        Vaswani et al., Attention Is All You Need, NeurIPS 2017, section 3.1, with LayerNorm
        before each part; DivE's ablation "transformer".
    """

    def __init__(
        self,
        width: int,
        size: int,
        n_queries: int = 4,
        layers: int = 4,
        heads: int = 4,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if size % heads:
            raise ValueError(f"size {size} is not a multiple of {heads} heads")
        self.queries = nn.Parameter(torch.randn(n_queries, size))
        self.input_norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            DecoderLayer(width, size, heads, dropout) for _ in range(layers)
        )
        self.output = GlobalResidual(size)

    def _sets(self, local: Tensor, mask: Mask, globals: Given, boxes: Given) -> Sets:
        inputs, mask = self.input_norm(zeroed(local, mask)), real_rows(local, mask)
        queries = self.queries.expand(len(local), -1, -1)
        for layer in self.layers:
            queries, attention = layer(queries, inputs, mask)
        return self.output(queries, globals, attention)


class DecoderLayer(nn.Module):
    """Self-attention, attention over the inputs and an MLP, each a residual after a LayerNorm."""

    def __init__(self, width: int, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.self_norm, self.cross_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.exchange = nn.MultiheadAttention(size, heads, batch_first=True)
        self.gather = nn.MultiheadAttention(size, heads, kdim=width, vdim=width, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.mlp_norm, self.mlp = nn.LayerNorm(size), feed_forward(size, dropout)

    def forward(self, queries: Tensor, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The queries `(n, K, D)` after the layer, and the mean weights `(n, K, R)` over heads."""
        normed = self.self_norm(queries)
        exchanged, _ = self.exchange(normed, normed, normed, need_weights=False)
        queries = queries + self.dropout(exchanged)
        normed = self.cross_norm(queries)
        gathered, attention = self.gather(normed, inputs, inputs, key_padding_mask=~mask)
        queries = queries + self.dropout(gathered)
        return queries + self.mlp(self.mlp_norm(queries)), attention
