"""The loop in two processes: what they wait for, and what they exchange."""

from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from counted_waits import counted_waits
from forked import in_processes
from small_methods import small
from torch import nn

from manymatch.config.preset import Preset, Training
from manymatch.methods import method_class
from manymatch.networks.layers import gru
from manymatch.networks.layers.dropout import Dropout
from manymatch.training import helpers
from manymatch.training.checkpoints import Checkpoints, History
from manymatch.training.data import SHARED, TrainingBatches, all_of, features_memory
from manymatch.training.loop import fit
from manymatch.training.machine import Machine

MACHINE = Machine("cpu", 2, "32-true")


@pytest.mark.parametrize("name", ["vse_infinity", pytest.param("cora", marks=pytest.mark.slow)])
def test_two_processes_wait_for_no_device(data, built, tmp_path, name, monkeypatch):
    """In the loop itself; `methods/test_waits.py` has one step of each method."""
    # The GRU and dropout have code of their own on a CPU.
    monkeypatch.setattr(gru, "read_on_cpu", lambda *inputs: gru.read_by_torch(*inputs[:3]))
    monkeypatch.setattr(Dropout, "forward", nn.Dropout.forward)
    found = []

    def counted(batches, title, total, passing):
        for batch in batches:
            with counted_waits() as waits:
                yield batch
            found.append(waits)

    monkeypatch.setattr("manymatch.training.loop.track", counted)
    training = {"epochs": 1, "images_per_batch": 16, "captions_per_image": 1, "devices": 2}
    settings = {"method": name, "features": "grid", "model": small(name), "training": training}
    preset = Preset.model_validate(settings)

    def work(rank):
        monkeypatch.setattr(helpers, "_rank", rank)
        method = built(name)
        curves = SimpleNamespace(add=lambda: None)
        with Checkpoints(tmp_path / "checkpoints", {}, name) as store:
            fit(method, preset, data, MACHINE, History(), store, curves)
        return found, sum(parameter.requires_grad for parameter in method.parameters())

    for waits, parameters in in_processes(2, work, tmp_path):
        allowed = Counter(tolist=2)  # sizes that the hosts exchange
        if method_class(name).reads_graphs:  # DDP's list of unused parameters, on the host
            allowed["aten._local_scalar_dense.default"] = parameters
        assert waits[1:] == [allowed] * 2


def test_gradients_are_exchanged_in_bfloat16(tmp_path, monkeypatch):
    def gradient(rank):
        monkeypatch.setattr(helpers, "_rank", rank)
        torch.manual_seed(0)
        layer, rows = nn.Linear(5, 3), torch.randn(2, 4, 5)[rank]
        fabric = MACHINE.fabric(Training(exchange="bfloat16"), SimpleNamespace(reads_graphs=False))
        fabric.launch()
        parallel = fabric.setup_module(layer)
        fabric.backward(parallel(rows).square().sum())
        return layer.weight.grad, torch.autograd.grad(layer(rows).square().sum(), layer.weight)[0]

    (one, first), (other, second) = in_processes(2, gradient, tmp_path)
    mean = (first + second) / 2
    assert torch.equal(one, other) and not torch.equal(one, mean)
    assert torch.equal(one.bfloat16().float(), one)
    torch.testing.assert_close(one, mean, rtol=0.01, atol=0.02)


@pytest.mark.skipif(not SHARED, reason="no memory without a name")
def test_processes_share_the_features_in_memory(data, tmp_path):
    """Each fills the same batches, and a change in one process is seen in the other."""
    settings = {"images_per_batch": 8, "captions_per_image": 1, "features_in": "memory"}
    preset = Preset.model_validate({"method": "vsepp", "features": "grid", "training": settings})

    def sums(*share):
        stream = TrainingBatches(preset, data, *share)
        return [part.features.double().sum((1, 2)) for (part,) in stream]

    def work(rank):
        memory = features_memory(preset, data.shards, torch.device("cpu"), here=2)
        parts = sums(rank, 2)
        if rank:
            memory._features.fill_(7)
        all_of(None)
        return parts, memory._features.unique().tolist()

    (one, seen), (other, same) = in_processes(2, work, tmp_path)
    torch.testing.assert_close(list(map(torch.cat, zip(one, other, strict=True))), sums())
    assert seen == same == [7.0]
