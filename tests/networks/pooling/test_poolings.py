"""Poolings equal naive loops, and padding never matters to them."""

import pytest
import torch
from naive_sets import ragged as samples_of
from torch.nn import functional

from manymatch.networks.layers.position_code import sine_code
from manymatch.networks.layers.segments import segment_max, segment_mean, segment_sum
from manymatch.networks.pooling.global_pooling import GPO, pooling


def ragged(garbage=7.0):
    sets, local, mask, _ = samples_of([3, 1, 5, 3], 6, 1, garbage)
    return [members.float() for members in sets], local.float(), mask


@pytest.mark.parametrize("name", ["mean", "max", "gpo"])
@pytest.mark.parametrize("garbage", [-1e8, torch.nan])
def test_a_set_is_pooled_alike_alone_and_padded(name, garbage):
    sets, local, mask = ragged(garbage=garbage)
    pool = pooling(name)
    together = pool(local, mask)
    assert together.shape == (len(sets), 1, 6)
    for row, members in enumerate(sets):
        alone = pool(members[None], torch.ones(1, len(members), dtype=torch.bool))
        torch.testing.assert_close(together[row], alone[0], atol=1e-6, rtol=1e-6)
    local.requires_grad_()
    pool(local, mask).square().sum().backward()
    assert (local.grad[~mask] == 0).all() and (local.grad[mask] != 0).any()
    assert local.grad.isfinite().all()


def test_mean_and_max_are_what_they_say():
    sets, local, mask = ragged()
    means = torch.stack([members.mean(0) for members in sets])
    torch.testing.assert_close(pooling("mean")(local, mask)[:, 0], means)
    highest = torch.stack([members.amax(0) for members in sets])
    torch.testing.assert_close(pooling("max")(local, mask)[:, 0], highest)


def naive_gpo(pool, members):
    """VSE-infinity's operator on one set, dimension by dimension."""
    states, _ = pool.gru.gru(sine_code(len(members), 32)[None])
    averaged = (states[0, :, :32] + states[0, :, 32:]) / 2
    weights = functional.softmax(averaged @ pool.score.weight[0] / 0.1, 0)
    pooled = []
    for values in members.T.tolist():
        ordered = sorted(values, reverse=True)
        pooled.append(sum(w * v for w, v in zip(weights, ordered, strict=True)))
    return torch.stack(pooled)


def test_gpo_equals_the_naive_loop():
    torch.manual_seed(0)
    pool = GPO()
    sets, local, mask = ragged()
    local, mask = functional.pad(local, (0, 0, 0, 2)), functional.pad(mask, (0, 2))
    expected = torch.stack([naive_gpo(pool, members) for members in sets])
    result = pool(local, mask)[:, 0]
    torch.testing.assert_close(result, expected)
    gradients = (
        torch.autograd.grad(pooled.square().sum(), [*pool.parameters()])
        for pooled in (result, expected)
    )
    torch.testing.assert_close(*gradients)


SEGMENT = torch.tensor([0, 0, 2, 2, 2, 3])


def test_segment_operations_equal_loops_also_over_an_empty_segment():
    rows = torch.randn(6, 3, dtype=torch.float64)
    members = [rows[k == SEGMENT] for k in range(4)]
    torch.testing.assert_close(
        segment_sum(rows, SEGMENT, 4), torch.stack([m.sum(0) for m in members])
    )
    means = torch.stack([m.mean(0) if len(m) else torch.zeros(3).double() for m in members])
    torch.testing.assert_close(segment_mean(rows, SEGMENT, 4), means)
    largest = [m.amax(0) if len(m) else torch.full((3,), -torch.inf).double() for m in members]
    torch.testing.assert_close(segment_max(rows, SEGMENT, 4), torch.stack(largest))
