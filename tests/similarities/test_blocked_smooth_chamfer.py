"""The fast path of smooth-Chamfer against its formula."""

import pytest
import torch
from torch.nn.functional import normalize

from manymatch.similarities import sets
from manymatch.similarities.sets import factors_per_log, smooth_chamfer


def _sets(n, size, seed, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(n, size, 8, generator=generator, dtype=dtype), dim=-1)


def _naive(images, texts, alpha):
    scores = torch.empty(len(images), len(texts), dtype=torch.float64)
    for row, image in enumerate(images.double()):
        for column, text in enumerate(texts.double()):
            cosines = alpha * image @ text.T
            both = cosines.logsumexp(1).mean() + cosines.logsumexp(0).mean()
            scores[row, column] = both / (2 * alpha)
    return scores


@pytest.mark.parametrize("alpha", [16.0, 85.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_extreme_cosines_neither_overflow_nor_underflow(alpha, sign):
    images = _sets(1, 1, 0).expand(3, 4, 8).contiguous()
    expected = _naive(images, sign * images, alpha)
    actual = smooth_chamfer(images, sign * images, alpha).double()
    torch.testing.assert_close(actual, expected, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("alpha", [0.5, 16.0, 64.0, 300.0])
@pytest.mark.parametrize(("n_image", "n_text"), [(4, 4), (1, 3)])
def test_vectors_of_any_length(alpha, n_image, n_text):
    for length in (0.0, 0.1, 1.0, 1.1, 2.3, 2.4, 2.5, 30.0, 1e4):
        images, texts = length * _sets(3, n_image, 0), _sets(4, n_text, 1)
        expected = _naive(images, texts, alpha)
        scores = smooth_chamfer(images, texts, alpha).double()
        torch.testing.assert_close(scores, expected, atol=2e-6, rtol=1e-5)
        learning = smooth_chamfer(images.requires_grad_(), texts, alpha).detach().double()
        torch.testing.assert_close(scores, learning, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("length", [1.0, 30.0])
def test_one_long_vector_is_enough_and_may_hide_a_short_sum(length):
    """Sums that are too small for the type, in one product with such as are too large."""
    image, texts = _sets(1, 1, 0), _sets(3, 2, 1)
    images = torch.cat([length * image, -length * image], 1)
    texts[1] = torch.cat([image[0], image[0]])
    expected = _naive(images, texts, 16.0)
    result = smooth_chamfer(images, texts).double()
    torch.testing.assert_close(result, expected, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("cosine", [-1.0, 1.0])
def test_what_is_of_unit_length_takes_the_fast_path(monkeypatch, cosine):
    monkeypatch.setattr(sets, "logsumexp_scores", None)
    images = _sets(5, 3, 0)
    smooth_chamfer(images, cosine * images)
    smooth_chamfer(images.bfloat16(), cosine * images.bfloat16())


@pytest.mark.parametrize("learning", [False, True])
def test_alpha_may_be_learned(learning):
    alpha = torch.tensor(16.0, dtype=torch.float64, requires_grad=True)
    images, texts = _sets(2, 3, 0, torch.float64), _sets(3, 2, 1, torch.float64)
    images.requires_grad_(learning)
    assert torch.autograd.gradcheck(lambda a: smooth_chamfer(images, texts, a), alpha)
    with torch.no_grad():
        result = smooth_chamfer(images, texts, alpha)
    torch.testing.assert_close(result, smooth_chamfer(images, texts, 16.0).detach())


def test_how_many_sums_one_logarithm_may_take():
    assert factors_per_log(16.0, 4, torch.float32) >= 4
    assert factors_per_log(64.0, 4, torch.float32) == 1
    assert factors_per_log(300.0, 4, torch.float32) == 0
    assert factors_per_log(300.0, 4, torch.float64) >= 1
