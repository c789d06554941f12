"""The devices of a training, its precision and its strategy."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from manymatch.config.preset import Training
from manymatch.networks.device import multiplies_bfloat16
from manymatch.training import machine
from manymatch.training.machine import Machine, choose_machine, description
from manymatch.util.errors import ConfigError


def gpus(count, bf16, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda emulated=True: bf16)
    monkeypatch.setattr(machine, "multiplies_bfloat16", lambda: bf16)


@pytest.mark.parametrize(
    ("count", "bf16", "asked", "expected", "reason"),
    [
        (0, False, {}, Machine("cpu", 1, "32-true"), "this CPU does not multiply bfloat16"),
        (0, True, {}, Machine("cpu", 1, "bf16-mixed"), "this CPU multiplies bfloat16"),
        (0, False, {"devices": 2}, Machine("cpu", 2, "32-true"), "does not multiply"),
        (0, True, {"precision": "32-true"}, Machine("cpu", 1, "32-true"), "preset"),
        (0, False, {"precision": "16-mixed"}, Machine("cpu", 1, "bf16-mixed"), "no 16-mixed"),
        (4, True, {"strategy": "ddp"}, Machine("gpu", 4, "bf16-mixed"), "this GPU multiplies"),
        (4, False, {"devices": 1}, Machine("gpu", 1, "16-mixed"), "this GPU does not multiply"),
        (2, True, {"precision": "32-true"}, Machine("gpu", 2, "32-true"), "preset"),
        (2, True, {"strategy": "fsdp"}, Machine("gpu", 2, "bf16-mixed", 1, True), "multiplies"),
    ],
)
def test_devices_and_precision_with_the_reason(count, bf16, asked, expected, reason, monkeypatch):
    gpus(count, bf16, monkeypatch)
    chosen = choose_machine(Training(**asked))
    assert chosen == expected
    line = description(Training(**asked), chosen)
    assert reason in line and chosen.precision in line
    mixed_on_gpu = chosen.accelerator == "gpu" and "mixed" in chosen.precision
    assert ("TF32" in line) == chosen.tf32 == mixed_on_gpu


@pytest.fixture
def under_torchrun(monkeypatch):
    """One of two hosts with two processes each."""
    environment = {"TORCHELASTIC_RUN_ID": "x", "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "4"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("under_torchrun")
def test_torchrun_decides_on_devices_and_hosts(monkeypatch):
    gpus(4, True, monkeypatch)
    assert choose_machine(Training()) == Machine("gpu", 2, "bf16-mixed", 2)
    gpus(0, False, monkeypatch)
    assert choose_machine(Training(devices=2)) == Machine("cpu", 2, "32-true", 2)


LATE = ({"match": "x", "from_epoch": 1},)


@pytest.mark.parametrize(
    ("torchrun", "count", "asked", "words"),
    [
        (False, 2, {"devices": 4}, "devices: 4 GPUs .* has 2"),
        (True, 0, {"devices": 3}, "devices: 3 .* started 2 processes"),
        (True, 0, {"images_per_batch": 30}, "30 images .* 4 devices.* multiple of 4"),
        (True, 0, {"images_per_batch": 32, "accumulate": 3}, "accumulate: 3.* multiple of 12"),
        (True, 1, {}, "2 GPUs .* has 1"),
        (False, 0, {"strategy": "fsdp", "devices": 2}, "strategy: fsdp .* 2 x cpu"),
        (False, 1, {"strategy": "fsdp"}, "strategy: fsdp .* 1 x gpu"),
        (False, 2, {"strategy": "fsdp", "optimizer": {"name": "adamp"}}, "fsdp .*adamp"),
        (False, 2, {"strategy": "fsdp", "weight_average": 0.9}, "fsdp .*weight_average"),
        (False, 2, {"strategy": "fsdp", "accumulate": 2}, "fsdp .*accumulate"),
        (False, 2, {"strategy": "fsdp", "parameter_groups": LATE}, "fsdp .*frozen"),
        (False, 2, {"strategy": "fsdp", "precision": "16-mixed"}, "fsdp .*16-mixed"),
        (False, 2, {"strategy": "fsdp", "compile": True}, "fsdp .*compile"),
        (False, 2, {"strategy": "fsdp", "exchange": "bfloat16"}, "fsdp .*exchange"),
    ],
)
def test_what_cannot_work_is_one_line(torchrun, count, asked, words, monkeypatch, request):
    if torchrun:
        request.getfixturevalue("under_torchrun")
    gpus(count, True, monkeypatch)
    with pytest.raises(ConfigError, match=words) as caught:
        choose_machine(Training.model_validate(asked))
    assert "\n" not in str(caught.value)


def test_fsdp_does_not_divide_single_numbers():
    class Net(nn.Module):
        reads_graphs = False

        def __init__(self):
            super().__init__()
            self.temperature = nn.Parameter(torch.ones(()))

    with pytest.raises(ConfigError, match="fsdp cannot divide 'temperature'"):
        Machine("gpu", 2, "32-true", sharded=True).fabric(Training(), Net())


OF_MANY_SHAPES = """
import psutil, torch
from manymatch.networks import device
held = lambda: psutil.Process().memory_info().rss
weight = torch.ones(64, 64, dtype=torch.bfloat16)
product = lambda rows: torch.ones(rows, 64, dtype=torch.bfloat16) @ weight
product(1)
before = held()
for rows in range(1, 801):
    product(rows)
print(held() - before)
"""


@pytest.mark.skipif(not multiplies_bfloat16(), reason="no bfloat16 on this CPU")
def test_products_of_many_shapes_take_no_memory_for_each_shape():
    command = [sys.executable, "-c", OF_MANY_SHAPES]
    grown = int(subprocess.run(command, capture_output=True, check=True).stdout)
    assert grown < 150 * 2**20  # 56 MiB here; 512 MiB where torch keeps its 1,024 shapes
