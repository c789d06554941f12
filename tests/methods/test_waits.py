"""A training step never waits for a device: the host asks for no value and no size of a tensor."""

import pytest
import torch
from counted_waits import waits
from small_methods import VARIANTS, losses
from torch import nn

from manymatch.networks.layers import gru
from manymatch.networks.layers.dropout import Dropout
from manymatch.training.adamp import AdamP


@pytest.mark.parametrize(
    ("name", "settings"),
    # The error of each round decides whether a tolerance is reached.
    [pair for pair in VARIANTS if "tolerance" not in pair[1]],
    ids=str,
)
def test_a_step_asks_the_device_for_nothing(build, make_batch, name, settings, monkeypatch):
    # The GRU and dropout have code of their own on a CPU.
    monkeypatch.setattr(gru, "read_on_cpu", lambda *inputs: gru.read_by_torch(*inputs[:3]))
    monkeypatch.setattr(Dropout, "forward", nn.Dropout.forward)
    method, batch = build(name, settings).train(), make_batch(range(5))
    steps = AdamP(method.parameters(), lr=1e-3, weight_decay=1e-2)
    method.start_epoch(100)
    method.start_step(100.0)

    def step():
        steps.zero_grad()
        torch.stack(list(losses(method, batch).values())).sum().backward()
        torch.nn.utils.clip_grad_norm_(method.parameters(), 2.0)
        steps.step()

    step()  # later steps differ from the first one, which makes the optimiser's state
    assert not waits(step)


@pytest.mark.parametrize(
    "asks",
    [
        lambda x: float(x[0]),
        lambda x: x[x > 0],
        lambda x: x.index_put((x > 0,), x.new_ones(())),
        lambda x: x.nonzero(),
        lambda x: x.tolist(),
        lambda x: x.repeat_interleave(x.long()),
    ],
)
def test_the_counter_sees_what_asks(asks):
    x = torch.arange(3.0)
    assert waits(lambda: asks(x)).total()
