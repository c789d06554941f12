"""Graph attention against a naive loop, and its gradients."""

import pytest
import torch
from same_gradients import assert_same
from torch import nn
from torch.nn.functional import leaky_relu

from manymatch.networks.pooling.graph_attention import GATv2, GraphAttention

EDGES = torch.tensor([[0, 1, 2, 2, 4, 4], [1, 0, 0, 1, 3, 3]])
"""Two graphs; node 5 stands alone; a double edge."""


def nodes(count=6, size=8, dtype=torch.float64):
    return torch.randn(count, size, generator=torch.Generator().manual_seed(0), dtype=dtype)


def naive(layer, x, edges):
    """Eq. 7 of GATv2, node by node."""
    rows = []
    for i in range(len(x)):
        sources = [int(s) for s, t in edges.T if t == i] + [i]
        values = [layer.source(x[j]).view(2, 4) for j in sources]
        query = layer.target(x[i]).view(2, 4)
        scores = torch.stack(
            [(leaky_relu(value + query, 0.2) * layer.attention).sum(1) for value in values]
        )
        weights = scores.softmax(0)
        rows.append(sum(w[:, None] * v for w, v in zip(weights, values, strict=True)).flatten())
    return torch.stack(rows) + layer.bias


@pytest.mark.parametrize("edges", [EDGES, EDGES[:, :0]], ids=["edges", "no edges"])
def test_gatv2_equals_the_naive_loop(edges):
    layer, residual, x = GATv2(8, 8, heads=2).double(), nn.Linear(8, 8).double(), nodes()
    nn.init.normal_(layer.bias)
    result = layer(x.requires_grad_(), edges, residual) - residual(x)
    assert_same(result, naive(layer, x, edges), [x, *layer.parameters()])


def test_large_scores_do_not_overflow():
    layer = GraphAttention(8, 8, heads=2)
    with torch.no_grad():
        layer.gather.attention.mul_(1e6)
    assert layer(nodes(dtype=torch.float32), EDGES).isfinite().all()
