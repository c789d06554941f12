"""The losses on sets equal naive loops over their equations, values and gradients."""

import pytest
import torch
from same_gradients import assert_same, normal
from torch.nn import functional

from manymatch.losses import (
    global_discriminative,
    gram_diversity,
    intra_set_divergence,
    mmd,
    slot_diversity,
    uniformity,
)

SIZES = [(4, 3, 5), (3, 1, 4), (1, 1, 3)]
"""Samples, elements, dimensions."""
sizes = pytest.mark.parametrize("shape", SIZES, ids=str)


def cos(x, y):
    return (x @ y) / (x.norm() * y.norm())


def mean(terms, zero):
    """The mean of a list, and for an empty one a zero that has a gradient."""
    return sum(terms) / len(terms) if terms else zero.sum() * 0


def naive_mmd(images, texts, gamma, squared):
    x, y = images.flatten(0, 1), texts.flatten(0, 1)

    def kernel(a, b):
        difference = a - b
        if not difference.any():
            return difference.sum() * 0 + 1
        distance = (difference @ difference) if squared else difference.norm()
        return torch.exp(-gamma * distance)

    def over(rows, columns):
        return mean([kernel(a, b) for a in rows for b in columns], rows)

    return over(x, x) - 2 * over(x, y) + over(y, y)


@sizes
@pytest.mark.parametrize("squared", [False, True])
def test_mmd(shape, squared):
    images, texts = normal(*shape), normal(3, 2, shape[2], seed=1)
    expected = naive_mmd(images, texts, 0.5, squared)
    assert_same(mmd(images, texts, squared=squared), expected, [images, texts])


@pytest.mark.parametrize("squared", [False, True])
def test_mmd_of_coinciding_elements(squared):
    """Equal elements in a set, across samples and across modalities: gradient 0 between them."""
    images, texts = normal(4, 3, 5).detach(), normal(2, 3, 5, seed=1).detach()
    images[1, 2] = images[1, 0]
    images[3] = images[0]
    texts[1, 1] = images[2, 1]
    inputs = [images.requires_grad_(), texts.requires_grad_()]
    assert_same(mmd(*inputs, 0.7, squared), naive_mmd(*inputs, 0.7, squared), inputs)


@pytest.mark.parametrize("spread", [1.0, 1e-2])
def test_mmd_in_single_precision_where_all_elements_lie_close(spread):
    """Cancellation in `|x|^2 + |y|^2 - 2 xy` neither spoils the value nor the gradient."""
    centre = 3 * functional.normalize(normal(64).detach(), dim=0)
    images = centre + spread * normal(6, 4, 64, seed=1).detach() / 8
    texts = centre + spread * normal(9, 4, 64, seed=2).detach() / 8
    results = []
    for dtype in (torch.float64, torch.float32):
        inputs = [images.to(dtype).requires_grad_(), texts.to(dtype).requires_grad_()]
        value = mmd(*inputs)
        results.append((value.detach(), *torch.autograd.grad(value, inputs)))
    for exact, single in zip(*results, strict=True):
        assert (single - exact).abs().max() < 1e-3 * exact.abs().max() + 2e-7


def naive_slot_diversity(slots):
    terms = []
    for rows in slots:
        unit = [row / row.norm() for row in rows]
        terms += [
            torch.exp(-2 * (unit[i] - unit[j]).square().sum())
            for j in range(len(unit))
            for i in range(j)
        ]
    return mean(terms, slots)


def naive_gram_diversity(slots):
    size = slots.shape[1]
    norms = []
    for rows in slots:
        squares = [cos(rows[i], rows[j]) ** 2 for i in range(size) for j in range(size) if i != j]
        norms.append(torch.sqrt(sum(squares)) / size**2 if squares else rows.sum() * 0)
    return mean(norms, slots)


def naive_intra_set_divergence(sets):
    terms = [
        torch.exp(0.5 * (cos(rows[i], rows[j]) - 0.6))
        for rows in sets
        for j in range(len(rows))
        for i in range(j)
    ]
    return mean(terms, sets)


def naive_global_discriminative(sets):
    terms = [
        torch.exp(0.5 * (cos(element, rows.mean(0)) - 0.6)) for rows in sets for element in rows
    ]
    return mean(terms, sets)


SET_LOSSES = {
    "slot_diversity": (slot_diversity, naive_slot_diversity),
    "gram_diversity": (gram_diversity, naive_gram_diversity),
    "intra_set_divergence": (
        lambda *sets: intra_set_divergence(*sets, margin=0.6, scale=0.5),
        naive_intra_set_divergence,
    ),
    "global_discriminative": (
        lambda *sets: global_discriminative(*((x, x.mean(1)) for x in sets), margin=0.6, scale=0.5),
        naive_global_discriminative,
    ),
}


@sizes
@pytest.mark.parametrize("name", SET_LOSSES)
def test_losses_of_sets(name, shape):
    loss, naive = SET_LOSSES[name]
    sets, others = normal(*shape), normal(3, *shape[1:], seed=1)
    assert_same(loss(sets), naive(sets), [sets])
    assert_same(loss(sets, others), naive(sets) + naive(others), [sets, others])


@pytest.mark.parametrize("shape", [(2, 3), (7, 5)])
def test_uniformity(shape):
    x = normal(*shape)
    terms = [
        torch.exp(-2 * sum((a - b) ** 2 for a, b in zip(x[i], x[j], strict=True)))
        for i in range(len(x))
        for j in range(i)
    ]
    assert_same(uniformity(x), torch.log(sum(terms) / len(terms)), [x])


def test_uniformity_of_far_vectors_does_not_underflow():
    x = torch.tensor([[0.0, 0.0], [30.0, 0.0]], requires_grad=True)
    assert uniformity(x).item() == pytest.approx(-1800)


def test_gram_diversity_has_a_gradient_where_all_is_orthogonal():
    slots = torch.eye(3)[None].requires_grad_()
    (gradient,) = torch.autograd.grad(gram_diversity(slots), slots)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", ["mmd", *SET_LOSSES])
def test_half_precision_is_computed_in_single(name):
    half = normal(5, 3, 8, dtype=torch.float32).detach().bfloat16()
    loss = SET_LOSSES.get(name, (lambda x: mmd(x, x[:3].flip(1) * 0.5),))[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = loss(half)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, loss(half.float()))
