"""Modules that read K vectors out of local features: PIE-Net, a decoder, prototype attention."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from manymatch.networks.layers.linear import glorot_linear, precise
from manymatch.networks.pooling.global_pooling import Mask, cleared, masked_softmax, real_rows
from manymatch.similarities.vectors import unit

Given = Tensor | None


class Sets(NamedTuple):
    """The set of each sample.

    `vectors (n, K, D)` are the elements, not L2-normalised. `slots (n, K, D)` are the elements
    before the sample's global vector is added, for diversity losses. `attention (n, K, R)` holds
    the weight of each input in each element: rows sum to 1 over the real inputs and are 0 on
    padding.
    """

    vectors: Tensor
    slots: Tensor
    attention: Tensor


class SetModule(nn.Module, ABC):
    """A module that predicts a set of vectors from local features and a global vector."""

    def predict(
        self,
        local: Tensor,
        mask: Mask = None,
        globals: Tensor | None = None,
        boxes: Tensor | None = None,
    ) -> Sets:
        """`local (n, R, W)`, `mask (n, R)`, `globals (n, D)`, `boxes (n, R, 4)` -> `Sets`.

        Every sample has at least one real input. Without a `mask` all inputs are real. Without
        `globals` nothing is added to the slots. The `boxes` say where the inputs lie in the image
        (x1 y1 x2 y2 in 0..1), for modules that code the place.
        """
        return self._sets(local, mask, globals, boxes)

    @abstractmethod
    def _sets(self, local: Tensor, mask: Mask, globals: Given, boxes: Given) -> Sets:
        """`predict` of the module."""

    def forward(
        self,
        local: Tensor,
        mask: Mask = None,
        globals: Tensor | None = None,
        boxes: Tensor | None = None,
    ) -> Tensor:
        """`local (n, R, W)`, `mask (n, R)`, `globals (n, D)`, `boxes (n, R, 4)` -> the vectors
        `(n, K, D)` of `predict`."""
        return self.predict(local, mask, globals, boxes).vectors


class GlobalResidual(nn.Module):
    """DivE's output: `LN(slots) + LN(global)`, the same global vector for every slot."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.slot_norm, self.global_norm = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, slots: Tensor, globals: Tensor | None, attention: Tensor) -> Sets:
        slots = self.slot_norm(slots)
        if globals is None:
            return Sets(slots, slots, attention)
        return Sets(slots + self.global_norm(globals)[:, None], slots, attention)


def feed_forward(size: int, dropout: float) -> nn.Sequential:
    """The MLP of a transformer block: a hidden layer of `4 size`, GELU and dropout."""
    return nn.Sequential(
        nn.Linear(size, 4 * size), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * size, size)
    )


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
        return self.elements(attended, attention, globals)

    def elements(self, attended: Tensor, attention: Tensor, globals: Given) -> Sets:
        """The set of what the attention gives, `attended (n, K, W)` and its weights `(n, K, R)`."""
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
        local, mask = cleared(local, mask), real_rows(local, mask)
        weights = masked_softmax(self.second(self.first(local).tanh()).mT, mask)
        return weights.to(local.dtype) @ local, weights


def joint_attention(
    local: Tensor, mask: Mask, *modules: HeadAttention
) -> tuple[tuple[Tensor, Tensor], ...]:
    """The results of `modules` that read the same `local (n, R, W)` and `mask (n, R)`; by products
    for all of them where gradients are needed, as in `joint_linear`."""
    if not torch.is_grad_enabled():
        return tuple(module(local, mask) for module in modules)
    local, mask = cleared(local, mask), real_rows(local, mask)
    hidden = functional.linear(local, torch.cat([module.first.weight for module in modules]))
    heads = torch.block_diag(*(module.second.weight for module in modules))
    weights = masked_softmax(functional.linear(hidden.tanh(), heads).mT, mask)
    attended = weights.to(local.dtype) @ local
    counts = [module.second.out_features for module in modules]
    return tuple(zip(attended.split(counts, 1), weights.split(counts, 1), strict=True))


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
        inputs, mask = self.input_norm(cleared(local, mask)), real_rows(local, mask)
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


class PrototypeAttention(nn.Module):
    """p learned queries, each of which takes a softmax-weighted mean of the local features.

    `z_j = sum_r w_r x_r` with `w = softmax_r(q_j . x_r / T)`, where the local features x have
    length 1, as in SCAN, whose features the paper takes. One module reads both modalities, whose
    encoders give D dimensions. The paper prints no formula of the attention; in this project the
    features are keys and values. H heads with p queries each are one module with H p queries. The
    queries start from N(0, 1/D), so that a fresh module weighs all features almost equally.

    Args:
        size: D, of local features and queries.
        n_prototypes: number of queries, p or H p.
        temperature: T > 0 of the softmax.

    References:
        Kim, SwAMP: Swapped Assignment of Multi-Modal Pairs for Cross-Modal Retrieval,
        AISTATS 2023, section 5.3 and appendix D; Lee et al., Stacked Cross Attention for Image-Text
        Matching, ECCV 2018, whose released code normalises regions and words.
    """

    def __init__(self, size: int, n_prototypes: int, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = temperature
        self.queries = nn.Parameter(torch.randn(n_prototypes, size) * size**-0.5)

    def forward(self, local: Tensor, mask: Mask = None, globals: Tensor | None = None) -> Tensor:
        """`local (n, R, D)`, `mask (n, R)` -> `(n, p, D)`; `globals` are ignored."""
        features, mask = unit(cleared(local, mask)).to(local.dtype), real_rows(local, mask)
        scores = self.queries.to(features.dtype) @ features.mT / self.temperature
        weights = masked_softmax(scores, mask)
        return weights.to(features.dtype) @ features
