"""SCAN's cross-attention against loops over pairs, words and regions."""

from __future__ import annotations

import torch
from torch.nn import functional

from manymatch.experiments.costs.scan import cross_attention

REGION_MASK = torch.tensor([[True, True, True, False], [True] * 4, [True] + [False] * 3])
WORD_MASK = torch.tensor([[True, True, False], [True, True, True]])


def made_up():
    generator = torch.Generator().manual_seed(0)
    regions = torch.randn(3, 4, 6, dtype=torch.float64, generator=generator)
    words = torch.randn(2, 3, 6, dtype=torch.float64, generator=generator)
    return functional.normalize(regions, dim=2), functional.normalize(words, dim=2)


def naive(regions, words, temperature):
    clipped = (regions @ words.T).clamp(min=0)
    clipped = torch.stack([row / (row.norm() + 1e-8) for row in clipped])
    result = []
    for index, word in enumerate(words):
        weights = (temperature * clipped[:, index]).softmax(0)
        attended = sum(w * region for w, region in zip(weights, regions, strict=True))
        result.append(functional.cosine_similarity(attended, word, dim=0))
    return torch.stack(result).mean()


def test_it_equals_the_naive_loop_with_either_side_as_context():
    regions, words = made_up()
    result = cross_attention(regions, REGION_MASK, words, WORD_MASK, 9.0)
    other = cross_attention(words, WORD_MASK, regions, REGION_MASK, 4.0)
    for i in range(3):
        for j in range(2):
            pair = regions[i][REGION_MASK[i]], words[j][WORD_MASK[j]]
            torch.testing.assert_close(result[i, j], naive(*pair, 9.0), atol=1e-9, rtol=0)
            torch.testing.assert_close(other[j, i], naive(*pair[::-1], 4.0), atol=1e-9, rtol=0)


def test_gradients_equal_those_of_the_naive_loop():
    regions, words = (vectors.requires_grad_() for vectors in made_up())
    cross_attention(regions, REGION_MASK, words, WORD_MASK, 9.0).sum().backward()
    result = regions.grad, words.grad
    regions.grad = words.grad = None
    for i in range(3):
        for j in range(2):
            naive(regions[i][REGION_MASK[i]], words[j][WORD_MASK[j]], 9.0).backward()
    for ours, theirs in zip(result, (regions.grad, words.grad), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-8, rtol=0)


def test_padding_is_never_looked_at():
    regions, words = made_up()
    noisy = regions.masked_fill(~REGION_MASK[:, :, None], 5.0)
    noisy_words = words.masked_fill(~WORD_MASK[:, :, None], 5.0)
    plain = cross_attention(regions, REGION_MASK, words, WORD_MASK, 9.0)
    padded = cross_attention(noisy, REGION_MASK, noisy_words, WORD_MASK, 9.0)
    torch.testing.assert_close(padded, plain)
