"""The losses of PCME, PCME++ and MSRM equal naive loops, and are exact where probabilities are near
0 or 1."""

import math

import pytest
import torch
from same_gradients import assert_same, image_indices, left_out, normal

from manymatch.losses.contrastive import contrastive_terms
from manymatch.losses.probabilistic import (
    match_entropy,
    pseudo_positives,
    soft_contrastive,
    soft_match,
)


def naive_contrastive(logits, match, out):
    n, m, samples = logits.shape
    total = logits.sum() * 0
    for i in range(n):
        for j in (j for j in range(m) if not out[i, j]):
            p = sum(1 / (1 + torch.exp(-z)) for z in logits[i, j]) / samples
            total = total - torch.log(p if match[i, j] else 1 - p)
    return total / (n * m)


@pytest.mark.parametrize(
    ("n", "m", "samples", "share"), [(3, 5, 4, 0.0), (1, 2, 1, 0.0), (2, 3, 9, 0.5)]
)
def test_soft_contrastive(n, m, samples, share):
    logits, match = normal(n, m, samples), torch.arange(n)[:, None] == torch.arange(m) * n // m
    out = left_out(match, share)
    result = soft_contrastive(logits, match, out if share else None)
    assert_same(result, naive_contrastive(logits, match, out), [logits])
    assert torch.autograd.gradcheck(lambda z: soft_contrastive(z, match), [logits])


@pytest.mark.parametrize("logit", [-300.0, 300.0])
def test_a_sure_mistake_costs_its_logit(logit):
    logits = torch.full((1, 1, 4), logit, requires_grad=True)
    loss = soft_contrastive(logits, torch.tensor([[logit < 0]]))
    torch.testing.assert_close(loss, torch.tensor(300.0))
    loss.backward()
    torch.testing.assert_close(logits.grad, torch.full((1, 1, 4), math.copysign(0.25, logit)))


def naive_entropy(logits, labels, out=None):
    total = logits.sum() * 0
    if out is None:
        out = torch.zeros_like(labels, dtype=torch.bool)
    for row, own, omitted in zip(logits, labels, out, strict=True):
        for z, y in zip(row[~omitted], own[~omitted], strict=True):
            p = 1 / (1 + torch.exp(-z))
            total = total - y * torch.log(p) - (1 - y) * torch.log(1 - p)
    return total / logits.numel()


@pytest.mark.parametrize("image_index", image_indices(), ids=str)
def test_match_entropy(image_index):
    logits, match = case(image_index)
    for labels in (match.double(), torch.rand(match.shape, dtype=torch.float64)):
        assert_same(match_entropy(logits, labels), naive_entropy(logits, labels), [logits])
        out = left_out(match, 0.5)
        expected = naive_entropy(logits, labels, out)
        assert_same(match_entropy(logits, labels, out), expected, [logits])
    bools = soft_contrastive(logits[:, :, None], match)
    torch.testing.assert_close(match_entropy(logits, match.double()), bools)


@pytest.mark.parametrize("image_index", image_indices(), ids=str)
def test_pseudo_positives(image_index):
    """The loss is the mean over a query's true candidates, whichever side the queries are of."""
    logits, match = case(image_index)
    smooth = match * 0.9 + 0.04 * torch.rand(match.shape, dtype=torch.float64).round()
    for values, labels in (
        (logits, match.double()),
        (logits.T, match.T.double()),
        (logits, smooth),
    ):
        result = pseudo_positives(values, labels)
        assert not result.requires_grad
        for row, own, given in zip(values, labels, result, strict=True):
            true = [z for z, y in zip(row, own, strict=True) if y == own.max()]
            losses = [naive_entropy(row[None], own.max().where(row >= z, own)[None]) for z in true]
            expected = sum(losses) / len(losses)
            assert_same(match_entropy(row[None], given[None]), expected, [logits])
    assert pseudo_positives(torch.zeros(0, 3), torch.zeros(0, 3)).shape == (0, 3)


def naive_match(logits, match, out=None):
    """One pair at a time; a match's probability leaves out the query's other matches."""
    total = logits.sum() * 0
    out = torch.zeros_like(match) if out is None else out
    for row, true, omitted in zip(logits, match, out, strict=True):
        weights = torch.exp(row) * ~omitted
        for c, own in enumerate(true):
            if omitted[c]:
                continue
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
    logits = scale * normal(max(image_index) + 1, len(image_index)).detach()
    return logits.requires_grad_(), torch.arange(len(logits))[:, None] == torch.tensor(image_index)


@pytest.mark.parametrize("image_index", image_indices(), ids=str)
def test_soft_match(image_index):
    for scale in (0.1, 3.0):
        logits, match = case(image_index, scale)
        for z, true in ((logits, match), (logits.T, match.T)):
            assert_same(soft_match(z, true), naive_match(z, true), [logits])
            for share in (0.5, 1.0):
                out = left_out(true, share)
                assert_same(soft_match(z, true, out), naive_match(z, true, out), [logits])
    assert torch.autograd.gradcheck(lambda z: soft_match(z, match), [logits])


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_stacked_logits_have_the_losses_and_terms_of_each(share):
    logits, match = case([0, 0, 1, 2])
    stacked = torch.stack([logits, 3 * logits, -logits]).detach().view(3, 1, *match.shape)
    out = left_out(match, share) if share else None
    losses, terms = soft_match(stacked, match, out), contrastive_terms(stacked, match)
    assert losses.shape == (3, 1)
    for (one,), (loss,), (term,) in zip(stacked, losses, terms, strict=True):
        torch.testing.assert_close(loss, soft_match(one, match, out))
        torch.testing.assert_close(term, contrastive_terms(one, match))


def test_with_one_caption_an_image_it_is_the_printed_loss():
    logits, match = case(list(range(6)))
    for z, true in ((logits, match), (logits.T, match.T)):
        assert_same(soft_match(z, true), printed(z, true), [logits], atol=1e-12)


@pytest.mark.parametrize("gap", [5.0, 500.0])
def test_a_sure_mistake_costs_its_gap_and_is_still_corrected(gap):
    """P is 1 in single precision: `1 - P` would be 0, its logarithm infinite."""
    logits = torch.tensor([[0.0, gap]], requires_grad=True)
    wide = logits.detach().double()
    loss = soft_match(logits, torch.tensor([[True, False]]))
    expected = (wide.logsumexp(1) - wide[:, 0]).mean()  # both terms are -log P of the match
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=0)
    loss.backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[-1.0, 1.0]]), atol=0.01, rtol=0)
