"""PIE-Net: K attention heads over local features, each added to the global vector."""

from __future__ import annotations

from torch import Tensor, nn

from manymatch.networks.layers.linear import glorot_linear, precise
from manymatch.networks.pooling.masked import Mask, masked_softmax, real_rows, zeroed
from manymatch.networks.pooling.prediction import Given, SetModule, Sets


class PIENet(SetModule):
    """Elements `LN(global + sigmoid(FC(attended_k)))`; the slots are the sigmoids.

    With one element this module is the head by which PCME and MSRM predict a mean.

    Args:
        width: W, size of the inputs.
        size: D, size of the elements.
        n_elements: K.
        hidden: width inside the attention; None: half of `width`, as in the paper.
        dropout: of the sigmoids.

    References:
        Song and Soleymani, Polysemous Visual-Semantic Embedding for Cross-Modal Retrieval
        (PVSE), CVPR 2019.
    """

    def __init__(
        self,
        width: int,
        size: int,
        n_elements: int,
        hidden: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention = HeadAttention(width, n_elements, hidden)
        self.dropout = nn.Dropout(dropout)
        self.residual = glorot_linear(width, size)
        self.norm = nn.LayerNorm(size)

    def _sets(self, local: Tensor, mask: Mask, globals: Given, boxes: Given) -> Sets:
        attended, attention = self.attention(local, mask)
        # In half precision the elements of a set would be too much alike: which one is the nearest,
        # and which negative the hardest, would be chance.
        slots = self.dropout(precise(self.residual, attended).sigmoid())
        elements = slots if globals is None else slots + globals[:, None]
        return Sets(self.norm(elements), slots, attention)


class HeadAttention(nn.Module):
    """Attention `softmax(W_2 tanh(W_1 x))` over the real inputs, without biases; a head is a row of
    W_2.

    Args:
        width: size of the inputs.
        n_heads: K.
        hidden: rows of W_1; None: half of `width`.

    References:
        Lin et al., A Structured Self-attentive Sentence Embedding, ICLR 2017, eq. 6.
    """

    def __init__(self, width: int, n_heads: int, hidden: int | None = None) -> None:
        super().__init__()
        hidden = hidden or max(1, width // 2)
        self.first = nn.Linear(width, hidden, bias=False)
        self.second = nn.Linear(hidden, n_heads, bias=False)
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight)

    def forward(self, local: Tensor, mask: Mask = None) -> tuple[Tensor, Tensor]:
        """`local (n, R, W)`, `mask (n, R)` -> attended `(n, K, W)`, weights `(n, K, R)`."""
        local, mask = zeroed(local, mask), real_rows(local, mask)
        weights = masked_softmax(self.second(self.first(local).tanh()).mT, mask)
        return weights.to(local.dtype) @ local, weights
