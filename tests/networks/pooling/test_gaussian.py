"""The Gaussian head does what its equations say, and padding never matters to it."""

import pytest
import torch
from naive_sets import ragged as samples_of
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import layer_norm, normalize, softmax

from manymatch.networks.pooling.gaussian import GaussianHead, kl_to_standard, samples

WIDTH, SIZE, SIZES = 6, 5, [3, 1, 5]


def ragged():
    return samples_of(SIZES, WIDTH, SIZE, 7.0)


@pytest.fixture
def head():
    torch.manual_seed(0)
    made = GaussianHead(WIDTH, SIZE, log_variance=-1.5).double()
    for name, parameter in made.named_parameters():
        if name.endswith("bias") and not name.startswith("of_global"):
            torch.nn.init.normal_(parameter)
    return made


def attended(attention, members):
    scores = [attention.second.weight[0] @ torch.tanh(attention.first.weight @ x) for x in members]
    weights = softmax(torch.stack(scores), 0)
    return sum(w * x for w, x in zip(weights, members, strict=True))


def test_equals_the_equations_one_sample_at_a_time(head):
    sets, local, mask, globals_ = ragged()
    result = head(local, mask, globals_)
    for row, (members, pooled) in enumerate(zip(sets, globals_, strict=True)):
        pie = head.mean
        residual = pie.residual(attended(pie.attention, members)).sigmoid()
        mean = layer_norm(pooled + residual, [SIZE], pie.norm.weight, pie.norm.bias)
        spread = head.of_attended(attended(head.attention, members)) + head.of_global(pooled)
        torch.testing.assert_close(result.mean[row], normalize(mean, dim=0))
        torch.testing.assert_close(result.log_variance[row], spread)


def test_equal_variances_start_equal_for_all_inputs():
    made = GaussianHead(WIDTH, SIZE, log_variance=1.5, equal_variances=True).double()
    result = made(*ragged()[1:]).log_variance
    torch.testing.assert_close(result, torch.full_like(result, 1.5), atol=0, rtol=0)
    result.sum().backward()
    assert made.of_attended.weight.grad.any() and made.of_global.weight.grad.any()


def test_samples_have_the_gaussians_moments():
    mean, log_variance = torch.tensor([[0.5, -2.0]]), torch.tensor([[0.0, 2.0]])
    noise = torch.randn(40000, 2, generator=torch.Generator().manual_seed(0))
    drawn = samples(mean, log_variance, noise)[0]
    torch.testing.assert_close(drawn.mean(0), mean[0], atol=0.03, rtol=0)
    torch.testing.assert_close(drawn.var(0), log_variance[0].exp(), atol=0, rtol=0.03)
    own = samples(mean.expand(3, -1), log_variance.expand(3, -1), torch.zeros(3, 4, 2))
    assert torch.equal(own, mean.expand(3, 4, -1))


def test_kl_equals_torchs():
    torch.manual_seed(0)
    mean, log_variance = torch.randn(2, 4, 3, dtype=torch.float64)
    other = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum(1)
    torch.testing.assert_close(kl_to_standard(mean, log_variance), other)
