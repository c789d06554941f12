"""A training step never waits for a device: the host asks for no value and no size of a tensor.

Two modes of torch look on: one at operations whose result or size depends on values, one at calls
that bring a tensor to the host. Both work on the CPU, where such a call waits for nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from small_methods import VARIANTS, losses
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from manymatch.networks.layers import gru
from manymatch.networks.layers.dropout import Dropout
from manymatch.training.adamp import AdamP

TO_HOST = (Tensor.cpu, Tensor.numpy, Tensor.tolist, Tensor.item)
DYNAMIC = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
INDEXING = ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")


class Values(TorchDispatchMode):
    """Counts operations whose result or whose size depends on values on the device.

    A tensor made from Python's numbers is on the host; so are its views.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()
        self._host: list[Any] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        tensors = [part for part in tree_leaves((args, kwargs)) if isinstance(part, Tensor)]
        if func is torch.ops.aten.lift_fresh.default:
            self._host.append(args[0].untyped_storage())  # kept, so that its address stays its own
        host = {storage.data_ptr() for storage in self._host}
        on_device = any(part.untyped_storage().data_ptr() not in host for part in tensors)
        if on_device and _depends_on_values(func, args):
            self.waits[str(func)] += 1
        return func(*args, **(kwargs or {}))


def _depends_on_values(func: Any, args: tuple[Any, ...]) -> bool:
    if func._schema.name in INDEXING:
        return any(part is not None and part.dtype == torch.bool for part in args[1])
    return not DYNAMIC.isdisjoint(func.tags)


class Calls(TorchFunctionMode):
    """Counts calls that bring a tensor to the host."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in TO_HOST:
            self.waits[func.__name__] += 1
        return func(*args, **(kwargs or {}))


def waits(step: Any) -> Counter[str]:
    with Values() as values, Calls() as calls:
        step()
    return values.waits + calls.waits


@pytest.mark.parametrize(
    ("name", "settings"),
    # Newton's method of a tolerance runs on the host.
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

    def step() -> None:
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
        lambda x: x.unique(),
        lambda x: x.long().bincount(),
        lambda x: bool((x > 0).all()),
        lambda x: x.cpu(),
        lambda x: x.tolist(),
        lambda x: x.repeat_interleave(x.long()),
    ],
)
def test_the_counter_sees_what_asks(asks):
    x = torch.arange(3.0)
    assert waits(lambda: asks(x)).total()
