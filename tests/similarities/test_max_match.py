"""What MaxMatch's score is beyond its equation (see test_similarities)."""

from __future__ import annotations

from itertools import permutations
from math import e, exp

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.similarities import max_match, mil, top_match
from manymatch.util.errors import DataError


def sets(n: int, size: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(n, size, 16, generator=generator, dtype=dtype), dim=-1)


def by_all_permutations(image: Tensor, text: Tensor) -> float:
    cosines = (image @ text.T).tolist()
    columns = permutations(range(len(text)), len(image))
    best = max(columns, key=lambda pi: sum(cosines[k][c] for k, c in enumerate(pi)))
    return sum(exp(cosines[k][c]) - 1 for k, c in enumerate(best)) / len(image)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("n_image", "n_text"), [(4, 4), (2, 4), (3, 5)])
def test_the_best_of_all_permutations(n_image: int, n_text: int, dtype: torch.dtype) -> None:
    images, texts = sets(6, n_image, 0, dtype), sets(9, n_text, 1, dtype)
    expected = torch.tensor(
        [[by_all_permutations(x, y) for y in texts.double()] for x in images.double()],
        dtype=torch.float64,
    )
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    for learning in (False, True):
        result = max_match(images.requires_grad_(learning), texts)
        torch.testing.assert_close(result.double(), expected, atol=tolerance, rtol=0)
        images = images.detach()
    torch.testing.assert_close(max_match(texts, images).T, max_match(images, texts))


def test_the_sum_is_maximised_not_the_score() -> None:
    """The pairs (0.9, 0.05) score more than (0.5, 0.5), but their sum is smaller."""
    x, y = 0.9, 0.5
    images = torch.eye(3)[None, :2]
    texts = torch.tensor([[[x, y, (1 - x * x - y * y + 1) ** 0.5], [y, 0.05, 1.0]]])
    assert max_match(images, texts).item() == pytest.approx(exp(0.5) - 1, abs=1e-6)


def test_the_order_of_elements_does_not_matter() -> None:
    images, texts = sets(5, 4, 0), sets(6, 4, 1)
    scores = max_match(images, texts)
    torch.testing.assert_close(max_match(images[:, [2, 0, 3, 1]], texts), scores)
    torch.testing.assert_close(max_match(images, texts[:, [3, 2, 1, 0]]), scores)


def test_range_and_relations_to_the_retrieval_rules() -> None:
    images, texts = sets(5, 4, 0), sets(6, 4, 1)
    assert max_match(images, images).diagonal().tolist() == pytest.approx([e - 1] * 5, abs=1e-5)
    assert (top_match(images, texts) >= max_match(images, texts) - 1e-6).all()
    torch.testing.assert_close(top_match(images, texts, k=1), mil(images, texts).exp() - 1)
    assert top_match(images, texts, k=16).shape == (5, 6)


def test_gradients_reach_only_the_chosen_cosines() -> None:
    images = torch.eye(4)[None, :2].clone().requires_grad_()
    texts = torch.eye(4)[None, [1, 0]].clone().requires_grad_()
    max_match(images, texts).sum().backward()
    assert images.grad is not None
    expected = texts.detach()[:, [1, 0]] * e / 2
    torch.testing.assert_close(images.grad, expected)


def test_more_than_all_cosines_cannot_be_averaged() -> None:
    with pytest.raises(DataError, match="expected 1 to 16"):
        top_match(sets(1, 4, 0), sets(1, 4, 1), k=17)


@pytest.mark.parametrize("k", [1, 3, 4, 9, 50])
def test_the_best_cosines_by_both_ways_to_find_them(k: int) -> None:
    images, texts = sets(3, 10, 0), sets(4, 10, 1)
    learning = top_match(images.clone().requires_grad_(), texts, k)
    torch.testing.assert_close(top_match(images, texts, k), learning.detach())
