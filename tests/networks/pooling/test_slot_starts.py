"""The slots before the first pass: learned vectors, or samples of one Gaussian."""

from __future__ import annotations

import math

import torch

from manymatch.networks.pooling import SlotAttention


def test_slots_start_from_a_standard_normal():
    slots = SlotAttention(6, 512, n_slots=64).slots
    assert slots.requires_grad
    assert abs(slots.mean().item()) < 0.03 and abs(slots.std().item() - 1) < 0.03


def test_random_slots_are_drawn_in_training_and_fixed_in_evaluation():
    slots = SlotAttention(6, 64, 40, start="random").random
    with torch.no_grad():
        slots.mean.fill_(3.0), slots.log_std.fill_(-1.0)
    first, second = slots(50), slots(50)
    assert (first - second).abs().max() > 1 and (first[0] - first[1]).abs().max() > 1
    for drawn in (first, slots.eval()(50)):
        assert abs(drawn.mean().item() - 3) < 0.05
        assert abs(drawn.std().item() - math.exp(-1)) < 0.02
    fixed = slots(50)
    assert torch.equal(fixed, slots(7)[:1].expand(50, -1, -1))
    assert torch.equal(SlotAttention(6, 64, 40, start="random").random.noise, slots.noise)
    assert (fixed[0, 0] - fixed[0, 1]).abs().max() > 0.1
