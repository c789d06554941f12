"""Graph attention over the nodes of many graphs, as one flat tensor."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from manymatch.networks.layers.linear import glorot_linear, joint_linear
from manymatch.networks.layers.segments import segment_max, segment_sum


class GATv2(nn.Module):
    """GATv2: each node gathers values of its neighbours and itself; heads are concatenated.

    `out_i = b + sum_j softmax_j(a . LeakyReLU(W_s x_j + W_t x_i)) W_s x_j`, j over the sources of
    edges into i, and i itself. No edge is a loop. A linear layer of the nodes, the residual, is
    added.

    Raises:
        DataError: `heads` does not divide `size`.

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

    def forward(self, nodes: Tensor, edges: Tensor, residual: nn.Linear) -> Tensor:
        """`nodes (V, width)`, `edges (2, E)` rows of source and target -> `(V, size)`."""
        count = len(nodes)
        loops = torch.arange(count, device=edges.device).expand(2, -1)
        source, target = torch.cat([edges, loops], 1)
        kept, values, queries = joint_linear(nodes, residual, self.source, self.target)
        values = values.index_select(0, source).unflatten(1, (self.heads, -1))
        queries = queries.index_select(0, target).unflatten(1, (self.heads, -1))
        scores = (functional.leaky_relu(values + queries, self.slope) * self.attention).sum(2)
        highest = segment_max(scores.detach(), target, count)
        weights = (scores - highest.index_select(0, target)).exp()
        # The weights are divided by their sum behind the sum over the neighbours.
        sums = segment_sum(
            torch.cat([weights[:, :, None] * values, weights[:, :, None]], 2), target, count
        )
        gathered, whole = sums.split([values.shape[2], 1], 2)
        return kept + (gathered / whole).flatten(1) + self.bias


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
        gathered = self.norm(self.gather(nodes, edges, self.residual))
        return gathered.relu() if self.activate else gathered
