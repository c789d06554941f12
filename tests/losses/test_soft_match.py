"""Soft matching equals a naive loop, values and gradients, and is exact where P is near 0 or 1."""

from __future__ import annotations

import pytest
import torch

from manymatch.losses.probabilistic import soft_match

IMAGE_INDICES = [[0, 1, 2, 3], [0, 0, 1, 1, 1, 2, 3, 3], [0, 0, 0], [0]]


def naive(logits, match):
    """One pair at a time; a match's probability leaves out the query's other matches."""
    total = logits.sum() * 0
    for row, true in zip(logits, match, strict=True):
        weights = torch.exp(row)
        for c, own in enumerate(true):
            if own:
                total = total - torch.log(weights[c] / (weights[c] + weights[~true].sum()))
            else:
                total = total - torch.log(1 - weights[c] / weights.sum())
    return total / logits.numel()


def printed(logits, match):
    """MSRM's eq. 5 to 7 as printed: one softmax over all candidates."""
    p = logits.exp() / logits.exp().sum(1, keepdim=True)
    return -torch.where(match, p, 1 - p).log().mean()


def case(image_index, scale=1.0):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(
        max(image_index) + 1, len(image_index), generator=generator, dtype=torch.float64
    )
    match = torch.arange(len(logits))[:, None] == torch.tensor(image_index)
    return (scale * logits).requires_grad_(), match


@pytest.mark.parametrize("image_index", IMAGE_INDICES, ids=str)
@pytest.mark.parametrize("scale", [0.1, 3.0])
@pytest.mark.parametrize("turned", [False, True])
def test_equals_the_naive_loop(image_index, scale, turned):
    logits, match = case(image_index, scale)
    if turned:
        logits, match = logits.T.detach().requires_grad_(), match.T
    result, expected = soft_match(logits, match), naive(logits, match)
    assert result.shape == ()
    torch.testing.assert_close(result, expected, atol=1e-9, rtol=0)
    gradients = [torch.autograd.grad(loss, [logits])[0] for loss in (result, expected)]
    assert gradients[0].isfinite().all()
    torch.testing.assert_close(*gradients, atol=1e-9, rtol=0)


def test_with_one_caption_an_image_it_is_the_printed_loss():
    logits, match = case(list(range(6)))
    for z, true in ((logits, match), (logits.T, match.T)):
        losses = soft_match(z, true), printed(z, true)
        torch.testing.assert_close(*losses, atol=1e-12, rtol=0)
        torch.testing.assert_close(
            *(torch.autograd.grad(loss, [logits])[0] for loss in losses), atol=1e-12, rtol=0
        )


def test_the_matches_of_a_query_do_not_compete():
    """A better match never raises the loss of a query, however good its other matches are."""
    logits = torch.tensor([[10.0, 5.0, 4.0, 0.0]], requires_grad=True)
    soft_match(logits, torch.tensor([[True, True, True, False]])).backward()
    assert (logits.grad[0, :3] < 0).all()
    alone = torch.tensor([[9.0, -9.0, 3.0]], requires_grad=True)
    loss = soft_match(alone, torch.tensor([[True, True, True]]))
    assert loss == 0
    loss.backward()
    assert not alone.grad.any()


def test_gradient_by_differences():
    logits, match = case([0, 0, 1, 2, 2])
    assert torch.autograd.gradcheck(lambda z: soft_match(z, match), [logits])


@pytest.mark.parametrize("gap", [5.0, 50.0, 500.0])
def test_a_sure_mistake_costs_its_gap_and_is_still_corrected(gap):
    """P is 1 in single precision: `1 - P` would be 0, its logarithm infinite."""
    logits = torch.tensor([[0.0, gap]], requires_grad=True)
    match = torch.tensor([[True, False]])
    wide = logits.detach().double()
    loss = soft_match(logits, match)
    expected = (wide.logsumexp(1) - wide[:, 0]).mean()  # both terms are -log P of the match
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=0)
    loss.backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[-1.0, 1.0]]), atol=0.01, rtol=0)


def test_two_equal_candidates_may_both_be_the_most_probable():
    logits = torch.tensor([[2.0, 2.0, -1.0]], dtype=torch.float64, requires_grad=True)
    match = torch.tensor([[True, False, False]])
    result, expected = soft_match(logits, match), naive(logits, match)
    torch.testing.assert_close(result, expected, atol=1e-12, rtol=0)
