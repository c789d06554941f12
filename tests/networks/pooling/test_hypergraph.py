"""Hypergraph convolution equals a naive loop."""

import pytest
import torch
from same_gradients import assert_same

from manymatch.networks.pooling.hypergraph import HypergraphConvolution, soft_incidence

SHAPES = [(5, 3), (1, 1), (1, 4), (6, 1)]


def case(c, q, width=4, size=3):
    """A layer in double precision, vertices, and an incidence with values between 0 and 1."""
    torch.manual_seed(0)
    layer = HypergraphConvolution(width, size).double()
    torch.nn.init.normal_(layer.linear.bias)
    vertices = torch.randn(c, width, dtype=torch.float64, requires_grad=True)
    incidence = torch.rand(c, q, dtype=torch.float64, requires_grad=True)
    return layer, vertices, incidence


def naive(layer, vertices, incidence):
    """One vertex and one hyperedge at a time."""
    c, q = incidence.shape
    own = [layer.linear.weight @ vertices[v] + layer.linear.bias for v in range(c)]
    vertex = [sum(incidence[v, e] for e in range(q)) for v in range(c)]
    edge = [sum(incidence[v, e] for v in range(c)) for e in range(q)]
    rows = []
    for v in range(c):
        total = own[v] * 0
        for e in range(q):
            for u in range(c):
                weight = incidence[v, e] * incidence[u, e] / edge[e]
                total = total + weight * own[u] / torch.sqrt(vertex[v] * vertex[u])
        rows.append(1 / (1 + torch.exp(-total)))
    return torch.stack(rows)


@pytest.mark.parametrize(("c", "q"), SHAPES)
def test_equals_the_naive_loop(c, q):
    layer, vertices, incidence = case(c, q)
    inputs = [vertices, incidence, *layer.parameters()]
    assert_same(layer(vertices, incidence), naive(layer, vertices, incidence), inputs)


def test_a_vertex_alone_is_a_hypergraph_of_one_vertex():
    """Neither the number of hyperedges nor the incidence counts."""
    layer, vertices, incidence = case(5, 3)
    inputs = [vertices, *layer.parameters()]
    one_by_one = [naive(layer, vertices[v : v + 1], incidence[v : v + 1]) for v in range(5)]
    assert_same(layer(vertices, None), torch.cat(one_by_one), inputs)


def test_empty_vertices_and_hyperedges_are_safe():
    layer, vertices, incidence = case(4, 3)
    empty = incidence.detach().clone()
    empty[1], empty[:, 2] = 0.0, 0.0
    empty.requires_grad_()
    result = layer(vertices, empty)
    torch.testing.assert_close(result[1], torch.full_like(result[1], 0.5))
    result.sum().backward()
    assert empty.grad.isfinite().all() and vertices.grad.isfinite().all()
    kept = [0, 2, 3]
    torch.testing.assert_close(result[kept], layer(vertices[kept], empty[kept][:, :2]))


def test_incidence_is_one_for_matches_and_fades_with_distance():
    distances = torch.tensor([[0.3, 0.0, 2.0], [1.0, 4.0, 0.5]], dtype=torch.float64)
    match = torch.tensor([[True, False, False], [False, False, True]])
    expected = [[1.0, 0.3678794412], [1.0, 0.0183156389], [0.1353352832, 1.0]]
    result = soft_incidence(distances, match, torch.tensor(1.0).double())
    torch.testing.assert_close(result, torch.tensor(expected).double())
    assert soft_incidence(distances, match, 0.0).eq(1).all()  # eq. 8 with alpha 0
    bipolar = soft_incidence(distances, match, None)
    assert bipolar.tolist() == match.T.double().tolist()
