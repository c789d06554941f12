"""MSRM's hypergraph: messages between the candidates that the same queries are near to."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from manymatch.batch.shared_rows import share_rows
from manymatch.networks.layers.linear import glorot_linear

Activation = Callable[[Tensor], Tensor]


class HypergraphConvolution(nn.Module):
    """`activation(Dv^-1/2 H De^-1 H^T Dv^-1/2 (U Theta + b))` over candidates and queries.

    A candidate is a vertex, a query a hyperedge, and the incidence `H (c, q)` says how much a
    candidate belongs to a query. Dv and De are the row and column sums of H. A vertex or hyperedge
    without incidence passes no message; the output of such a vertex is `activation(0)`.

    Args:
        width: size of the candidates' vectors.
        size: size of the new vectors.
        activation: a function of each number. MSRM has the sigmoid in all layers, HGNN the ReLU
            between layers.

    References:
        Wang et al., Multilateral Semantic Relations Modeling for Image Text Retrieval (MSRM),
        CVPR 2023, eq. 10; Feng et al., Hypergraph Neural Networks (HGNN), AAAI 2019, eq. 10.
    """

    def __init__(self, width: int, size: int, activation: Activation = torch.sigmoid) -> None:
        super().__init__()
        self.linear = glorot_linear(width, size)
        self.activation = activation

    def forward(self, vertices: Tensor, incidence: Tensor | None) -> Tensor:
        """`vertices (c, width)`, `incidence (c, q)` >= 0 -> `(c, size)`.

        None: each vertex is a hypergraph of its own. With one vertex that is in a hyperedge,
        `Dv^-1/2 H De^-1 H^T Dv^-1/2` is 1 whatever the hyperedges and the incidence are, so that
        `activation(U Theta + b)` remains.
        """
        if incidence is None:
            return self.activation(self.linear(vertices))
        return self.exchange(vertices, messages(incidence))

    def exchange(self, vertices: Tensor, passed: Messages) -> Tensor:
        """`vertices (c, width)` -> `(c, size)`, by the messages that several layers may share."""
        to_edges, to_vertices = passed

        def columns(weight: Tensor, bias: Tensor) -> Tensor:
            # From right to left, so that no (c, c) matrix is made.
            edges = to_edges @ functional.linear(vertices, weight, bias)
            return self.activation(to_vertices @ edges).T

        # Processes share the numbers of the new vectors, which no step mixes: one exchange.
        return share_rows(columns, self.linear.weight, self.linear.bias).T


class Messages(NamedTuple):
    """The two factors of the product that a convolution multiplies by."""

    to_edges: Tensor
    """`De^-1 H^T Dv^-1/2 (q, c)`."""
    to_vertices: Tensor
    """`Dv^-1/2 H (c, q)`."""


def messages(incidence: Tensor) -> Messages:
    """The messages over an `incidence (c, q)` >= 0."""
    to_vertices = _power(incidence.sum(1, keepdim=True), -0.5) * incidence
    return Messages((_power(incidence.sum(0), -1.0) * to_vertices).T, to_vertices)


def _power(degrees: Tensor, exponent: float) -> Tensor:
    """`degrees ** exponent`, 0 where the degree is 0."""
    empty = degrees == 0
    return degrees.masked_fill(empty, 1.0).pow(exponent).masked_fill(empty, 0.0)


def soft_incidence(distances: Tensor, match: Tensor, alpha: Tensor | float | None) -> Tensor:
    """Incidence `(c, q)` of candidates and queries: 1 for a match, `exp(-alpha d2)` otherwise.

    Args:
        distances: `(q, c)` squared distances.
        match: `(q, c)` bool.
        alpha: >= 0, rate at which the incidence falls with d2. 0: the incidence is 1 everywhere;
            None: 0 without a match.

    References:
        MSRM, eq. 8. The paper prints the exponent with the opposite sign, by which the incidence
        would leave [0, 1].
    """
    if alpha is None:
        return match.T.to(distances.dtype)
    return (-alpha * distances).exp().masked_fill(match, 1.0).T
