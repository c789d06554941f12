"""Counts what makes a training step wait for a device.

Two modes of torch look on: one at operations whose result or size depends on values, one at calls
that bring a tensor to the host. Both work on the CPU, where such a call waits for nothing.
"""

from collections import Counter
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

TO_HOST = (Tensor.cpu, Tensor.numpy, Tensor.tolist, Tensor.item)
DYNAMIC = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
INDEXING = ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")


class Values(TorchDispatchMode):
    """Counts operations whose result or whose size depends on values on the device.

    A tensor made from Python's numbers is on the host; so are its views.
    """

    def __init__(self):
        super().__init__()
        self.waits = Counter()
        self._host = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        tensors = [part for part in tree_leaves((args, kwargs)) if isinstance(part, Tensor)]
        if func is torch.ops.aten.lift_fresh.default:
            self._host.append(args[0].untyped_storage())  # kept, so that its address stays its own
        host = {storage.data_ptr() for storage in self._host}
        on_device = any(part.untyped_storage().data_ptr() not in host for part in tensors)
        if on_device and _depends_on_values(func, args):
            self.waits[str(func)] += 1
        return func(*args, **(kwargs or {}))


def _depends_on_values(func, args):
    if func._schema.name in INDEXING:
        return any(part is not None and part.dtype == torch.bool for part in args[1])
    return not DYNAMIC.isdisjoint(func.tags)


class Calls(TorchFunctionMode):
    """Counts calls that bring a tensor to the host."""

    def __init__(self):
        super().__init__()
        self.waits = Counter()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in TO_HOST:
            self.waits[func.__name__] += 1
        return func(*args, **(kwargs or {}))


@contextmanager
def counted_waits():
    """The waits of the block, known at its end."""
    waits = Counter()
    with Values() as values, Calls() as calls:
        yield waits
    waits += values.waits + calls.waits


def waits(step):
    with counted_waits() as counted:
        step()
    return counted
