"""Graph attention over the nodes of many graphs, as one flat tensor."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from manymatch.layers.glorot import glorot_linear
from manymatch.layers.segments import segment_softmax, segment_sum


class GATv2(nn.Module):
    """GATv2: each node gathers values of its neighbours and itself; heads are concatenated.

    `out_i = b + sum_j softmax_j(a . LeakyReLU(W_s x_j + W_t x_i)) W_s x_j`, j over the sources of
    edges into i, and i itself. No edge is a loop.

    Raises:
        ValueError: `heads` does not divide `size`.

    References:
        Brody, Alon and Yahav, How Attentive are Graph Attention Networks?, ICLR 2022, eq. 7.
    """

    def __init__(self, width: int, size: int, heads: int = 16, slope: float = 0.2) -> None:
        super().__init__()
        if size % heads:
            raise ValueError(f"size {size} is not a multiple of {heads} heads")
        self.heads, self.slope = heads, slope
        self.source, self.target = glorot_linear(width, size), glorot_linear(width, size)
        self.attention = nn.Parameter(torch.empty(heads, size // heads))
        self.bias = nn.Parameter(torch.zeros(size))
        nn.init.xavier_uniform_(self.attention)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """`nodes (V, width)`, `edges (2, E)` rows of source and target -> `(V, size)`."""
        loops = torch.arange(len(nodes), device=edges.device).expand(2, -1)
        source, target = torch.cat([edges, loops], 1)
        values = self.source(nodes)[source].unflatten(1, (self.heads, -1))
        queries = self.target(nodes)[target].unflatten(1, (self.heads, -1))
        scores = (functional.leaky_relu(values + queries, self.slope) * self.attention).sum(2)
        weights = segment_softmax(scores, target, len(nodes))
        gathered = segment_sum(weights[:, :, None] * values, target, len(nodes))
        return gathered.flatten(1) + self.bias


class GraphAttention(nn.Module):
    """CORA's layer: `ReLU(LayerNorm(FC(x) + GATv2(x)))`; without `activate` there is no ReLU.

    References:
        Pham et al., CORA, CVPR 2024, section 3.2.
    """

    def __init__(self, width: int, size: int, heads: int = 16, activate: bool = True) -> None:
        super().__init__()
        self.activate = activate
        self.residual = glorot_linear(width, size)
        self.gather = GATv2(width, size, heads)
        self.norm = nn.LayerNorm(size)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """`nodes (V, width)`, `edges (2, E)` rows of source and target -> `(V, size)`."""
        gathered = self.norm(self.residual(nodes) + self.gather(nodes, edges))
        return gathered.relu() if self.activate else gathered
