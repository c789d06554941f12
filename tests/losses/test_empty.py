"""What is empty costs nothing: every loss of nothing is 0 and has a gradient."""

from __future__ import annotations

import math

import pytest
import torch

from manymatch import losses

NONE = torch.zeros(0, dtype=torch.int64)


def nothing(*shape):
    return torch.zeros(*shape, requires_grad=True)


def pairs(*shape):
    return torch.zeros(*shape, dtype=torch.bool)


EMPTY = {
    "triplet": [
        (lambda x, mining=mining: losses.triplet(x, NONE, 0.2, mining), shape)
        for mining in ("hardest", "all", "mean")
        for shape in [(0, 0), (3, 0)]
    ],
    "info_nce": [(lambda x: losses.info_nce(x, NONE, 0.05), shape) for shape in [(0, 0), (3, 0)]],
    "entity_contrastive": [
        (lambda x: losses.entity_contrastive(x, pairs(*x.shape), 0.01), shape)
        for shape in [(0, 0), (3, 0), (0, 3), (3, 4)]
    ],
    "soft_match": [
        (lambda x: losses.soft_match(x, pairs(*x.shape)), shape)
        for shape in [(0, 0), (3, 0), (0, 3)]
    ],
    "soft_contrastive": [
        (lambda x: losses.soft_contrastive(x, pairs(*x.shape[:2])), shape)
        for shape in [(0, 0, 4), (3, 0, 4)]
    ],
    "specificity": [(lambda x: losses.specificity(torch.ones(3), x, NONE, 0.4), (0,))],
    "swapped_assignment": [(lambda x: losses.swapped_assignment(x, x), (0, 5))],
    "mmd": [
        (lambda x: losses.mmd(x, torch.ones(3, 2, 6)), (0, 4, 6)),
        (lambda x: losses.mmd(torch.ones(3, 2, 6), x), (0, 4, 6)),
        (lambda x: losses.mmd(x, x), (0, 4, 6)),
        (lambda x: losses.mmd(x, nothing(0, 2, 6)), (3, 4, 6)),
    ],
    "uniformity": [(losses.uniformity, shape) for shape in [(0, 6), (1, 6)]],
    "slot_diversity": [(losses.slot_diversity, (0, 4, 6))],
    "gram_diversity": [(losses.gram_diversity, (0, 4, 6))],
    "intra_set_divergence": [
        (lambda x: losses.intra_set_divergence(x, margin=0.6, scale=0.5), (0, 4, 6))
    ],
    "global_discriminative": [
        (lambda x: losses.global_discriminative((x, x.sum(1)), margin=0.6, scale=0.5), (0, 4, 6))
    ],
}


@pytest.mark.parametrize("name", EMPTY)
def test_nothing_costs_nothing(name):
    for loss, shape in EMPTY[name]:
        empty = nothing(*shape)
        value = loss(empty)
        (gradient,) = torch.autograd.grad(value, empty)
        assert value.shape == ()
        assert value == 0, shape
        assert (gradient == 0).all(), shape


def test_every_loss_is_looked_at():
    assert EMPTY.keys() == set(losses.__all__) - {"sinkhorn"}


def test_an_anchor_without_positives_counts_as_zero():
    """One pair of two images and two concepts is true: log 2 over two anchors, each way."""
    positive = torch.tensor([[True, False], [False, False]])
    result = losses.entity_contrastive(torch.zeros(2, 2), positive, 0.5)
    assert result.item() == pytest.approx(math.log(2))
