"""Every similarity equals a naive loop over its equation, values and gradients."""

from functools import partial
from math import e, exp

import pytest
import torch
from same_gradients import assert_same, normal
from scipy.optimize import linear_sum_assignment
from torch.nn.functional import normalize

from manymatch.similarities import (
    blocks,
    chamfer,
    cosine,
    match_probability,
    max_match,
    mil,
    smooth_chamfer,
    top_match,
)
from manymatch.util.errors import DataError


def naive_cosine(x, y):
    return sum(a @ b for a in x for b in y) / (len(x) * len(y))


def naive_mil(x, y):
    return max(a @ b for a in x for b in y)


def naive_chamfer(x, y):
    forth = sum(max(a @ b for b in y) for a in x) / len(x)
    back = sum(max(a @ b for a in x) for b in y) / len(y)
    return forth / 2 + back / 2


def naive_smooth_chamfer(x, y, alpha=16.0):
    forth = sum(torch.log(sum(torch.exp(alpha * (a @ b)) for b in y)) for a in x)
    back = sum(torch.log(sum(torch.exp(alpha * (a @ b)) for a in x)) for b in y)
    return forth / (2 * alpha * len(x)) + back / (2 * alpha * len(y))


def naive_probability(x, y):
    chances = [1 / (1 + torch.exp(-(7 * (a @ b) - 2))) for a in x for b in y]
    return sum(chances) / len(chances)


def naive_max_match(x, y):
    smaller, larger = (x, y) if len(x) <= len(y) else (y, x)
    cosines = [[(a @ b).item() for b in larger] for a in smaller]
    pairs = zip(*linear_sum_assignment(cosines, maximize=True), strict=True)
    terms = [torch.exp(smaller[k] @ larger[pi]) - 1 for k, pi in pairs]
    return sum(terms) / len(terms)


def naive_top_match(x, y):
    best = sorted((a @ b for a in x for b in y), reverse=True)[: min(len(x), len(y))]
    return sum(torch.exp(value) - 1 for value in best) / len(best)


PAIRS = {
    "cosine": (cosine, naive_cosine),
    "mil": (mil, naive_mil),
    "chamfer": (chamfer, naive_chamfer),
    "smooth_chamfer": (smooth_chamfer, naive_smooth_chamfer),
    "probability": (partial(match_probability, scale=7.0, shift=-2.0), naive_probability),
    "max_match": (max_match, naive_max_match),
    "top_match": (top_match, naive_top_match),
}
SHAPES = [(3, 4, 4, 4), (2, 1, 3, 1), (4, 2, 1, 5), (3, 5, 2, 3), (2, 9, 1, 10)]
every = pytest.mark.parametrize(("similarity", "naive"), PAIRS.values(), ids=PAIRS)


def unit(*shape, seed=0):
    return normalize(normal(*shape, seed=seed).detach(), dim=-1)


@every
def test_equals_the_naive_loop(similarity, naive):
    for n, k, m, size in SHAPES:
        images = unit(n, k, 6).requires_grad_()
        texts = unit(m, size, 6, seed=1).requires_grad_()
        expected = torch.stack([torch.stack([naive(x, y) for y in texts]) for x in images])
        assert_same(similarity(images, texts), expected, [images, texts])
        with torch.no_grad():
            torch.testing.assert_close(similarity(images, texts), expected, atol=1e-9, rtol=0)
    image = unit(1, 3, 5)
    opposite = naive(image[0], -image[0])
    torch.testing.assert_close(similarity(image, -image)[0, 0], opposite, atol=1e-9, rtol=0)


@every
def test_half_precision_embeddings_are_compared_in_single_precision(similarity, naive):
    dtype = torch.bfloat16
    images, texts = unit(3, 2, 64).to(dtype), unit(4, 2, 64, seed=1).to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = similarity(images, texts)
        learning = similarity(images.requires_grad_(), texts)
    assert result.dtype == learning.dtype == torch.float32
    torch.testing.assert_close(result, similarity(images.detach().float(), texts.float()))
    torch.testing.assert_close(learning.detach(), result)
    assert torch.autograd.grad(learning.sum(), images)[0].dtype == dtype


@every
@pytest.mark.parametrize("learning", [False, True])
def test_a_score_depends_on_its_two_sets_alone(similarity, naive, learning):
    images, texts = unit(5, 3, 8).float(), unit(7, 4, 8, seed=1).float()
    images.requires_grad_(learning)
    scores = similarity(images, texts)
    torch.testing.assert_close(similarity(images[2:3], texts[4:5]), scores[2:3, 4:5])
    for element in range(4):
        spoilt = texts.clone()
        spoilt[1, element] = torch.nan
        result = similarity(images, spoilt)
        assert result[:, 1].isnan().all()
        assert result[:, [0, *range(2, 7)]].isfinite().all()
    assert similarity(images, texts[:0]).shape == (5, 0)
    assert similarity(images[:0], texts).shape == (0, 7)


@every
@pytest.mark.parametrize(("n_image", "n_text", "m"), [(2, 3, 17), (2, 3, 1)])
def test_uneven_blocks_give_what_one_block_gives(
    similarity, naive, n_image, n_text, m, monkeypatch
):
    images, texts = unit(11, n_image, 8).float(), unit(17, n_text, 8, seed=1).float()
    whole, texts = similarity(images, texts)[:, :m], texts[:m]
    for elements, pairs in ((1024, 16384), (7, 4), (20, 1), (1, 100)):
        monkeypatch.setattr(blocks, "_CPU_ELEMENTS", elements)
        monkeypatch.setattr(blocks, "_CPU_PAIRS", pairs)
        monkeypatch.setattr(blocks, "_IMAGES_FOR_ONE_TEXT", 2)
        torch.testing.assert_close(similarity(images, texts), whole)
        learning = similarity(images.clone().requires_grad_(), texts)
        torch.testing.assert_close(learning.detach(), whole)


def test_threads_change_nothing():
    images, texts = unit(100, 4, 8).float(), unit(900, 4, 8, seed=1).float()
    before = torch.get_num_threads()
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        learning = images.clone().requires_grad_()
        score = max_match(learning, texts)
        score.sum().backward()
        results.append((max_match(images, texts), score.detach(), learning.grad))
    torch.set_num_threads(before)
    torch.testing.assert_close(results[0], results[1])


def test_what_match_probability_learns_gets_its_gradient():
    scale, shift = torch.tensor(7.0).requires_grad_(), torch.tensor(-2.0).requires_grad_()
    images, texts = unit(2, 3, 5).float(), unit(3, 2, 5, seed=1).float()
    assert torch.autograd.gradcheck(
        lambda a, b: match_probability(images.double(), texts.double(), a, b),
        (scale.double(), shift.double()),
    )
    match_probability(images, texts, scale, shift).sum().backward()
    assert scale.grad is not None and shift.grad is not None


def test_the_sum_is_maximised_not_the_score():
    """The pairs (0.9, 0.05) score more than (0.5, 0.5), but their sum is smaller."""
    x, y = 0.9, 0.5
    images = torch.eye(3)[None, :2]
    texts = torch.tensor([[[x, y, (1 - x * x - y * y + 1) ** 0.5], [y, 0.05, 1.0]]])
    assert max_match(images, texts).item() == pytest.approx(exp(0.5) - 1, abs=1e-6)


def test_order_range_and_relations_to_the_retrieval_rules():
    images, texts = unit(5, 4, 16), unit(6, 4, 16, seed=1)
    scores = max_match(images, texts)
    torch.testing.assert_close(max_match(images[:, [2, 0, 3, 1]], texts), scores)
    torch.testing.assert_close(max_match(images, texts[:, [3, 2, 1, 0]]), scores)
    assert max_match(images, images).diagonal().tolist() == pytest.approx([e - 1] * 5, abs=1e-5)
    assert (top_match(images, texts) >= scores - 1e-6).all()
    torch.testing.assert_close(top_match(images, texts, k=1), mil(images, texts).exp() - 1)
    with pytest.raises(DataError, match="expected 1 to 16"):
        top_match(images, texts, k=17)


@pytest.mark.parametrize("k", [1, 4, 50])
def test_the_best_cosines_by_both_ways_to_find_them(k):
    images, texts = unit(3, 10, 16), unit(4, 10, 16, seed=1)
    learning = top_match(images.clone().requires_grad_(), texts, k)
    torch.testing.assert_close(top_match(images, texts, k), learning.detach())
