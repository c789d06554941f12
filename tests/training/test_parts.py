"""Optimiser groups, weight averages, the history of epochs, and the choice of devices."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from manymatch.config.preset import ParameterGroup, Training
from manymatch.losses.pseudo_labels import Queue
from manymatch.methods.base import Embeddings
from manymatch.training import machine
from manymatch.training.history import RSUM, History
from manymatch.training.lightning import pl
from manymatch.training.machine import choose_machine
from manymatch.training.module import reseed
from manymatch.training.optimizer import make_optimizer, parameter_groups, thaw
from manymatch.training.weight_average import WeightAverage
from manymatch.util.errors import ConfigError


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cnn = nn.Linear(2, 2)
        self.head = nn.Linear(2, 1)
        self.norm = nn.BatchNorm1d(1)
        self.queue = Queue(3, 2)


def groups(*pairs: tuple[str, float]) -> list[ParameterGroup]:
    return [ParameterGroup(match=match, lr_scale=scale) for match, scale in pairs]


def test_parameters_go_to_the_first_group_they_match() -> None:
    net = Net()
    result = parameter_groups(net, groups(("bias$", 0.5), ("^cnn", 0.1)), lr=1.0)
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    assert [(group["lr"], [names[id(p)] for p in group["params"]]) for group in result] == [
        (0.5, ["cnn.bias", "head.bias", "norm.bias"]),
        (0.1, ["cnn.weight"]),
        (1.0, ["head.weight", "norm.weight"]),
    ]


def test_scale_zero_freezes() -> None:
    net = Net()
    result = parameter_groups(net, groups(("^cnn", 0.0)), lr=1.0)
    assert [len(group["params"]) for group in result] == [4]
    assert not any(parameter.requires_grad for parameter in net.cnn.parameters())


def test_a_group_shadowed_by_an_earlier_one_is_no_fault() -> None:
    assert len(parameter_groups(Net(), groups(("^cnn", 0.1), ("weight", 0.2)), lr=1.0)) == 3


def test_a_pattern_without_a_match_names_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"'vgg' \(names begin with: cnn, head, norm\)"):
        parameter_groups(Net(), groups(("vgg", 0.1)), lr=1.0)


def test_a_group_may_have_its_own_weight_decay() -> None:
    decay_groups = [
        ParameterGroup(match="^cnn", weight_decay=0.25),
        ParameterGroup(match="bias"),
    ]
    settings = {"optimizer": {"weight_decay": 0.5}, "parameter_groups": decay_groups}
    optimizer = make_optimizer(Net(), Training.model_validate(settings), fused=False)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.25, 0.5, 0.5]


def test_parameters_are_thawed_in_their_epoch_and_untouched_before() -> None:
    torch.manual_seed(0)
    net = Net()
    net.norm.weight.requires_grad_(False)  # a method's own choice, which stays
    late_groups = [ParameterGroup(match="^cnn|norm", from_epoch=2)]
    training = Training.model_validate(
        {"optimizer": {"weight_decay": 0.5, "lr": 0.1}, "parameter_groups": late_groups}
    )
    optimizer = make_optimizer(net, training, fused=True)
    changed = []
    for epoch in range(4):
        thaw(optimizer, epoch)
        before = net.cnn.weight.detach().clone()
        net.head(net.cnn(torch.ones(1, 2))).sum().backward()
        assert (net.cnn.weight.grad is None) == (epoch < 2)
        optimizer.step()
        optimizer.zero_grad()
        changed.append(not torch.equal(before, net.cnn.weight))
    assert changed == [False, False, True, True]
    assert not net.norm.weight.requires_grad and net.norm.bias.requires_grad


def test_something_must_be_trained_from_the_start() -> None:
    for late in (ParameterGroup(match="", from_epoch=1), ParameterGroup(match="", lr_scale=0.0)):
        with pytest.raises(ConfigError, match="trained in the first epoch"):
            parameter_groups(Net(), [late], lr=1.0)


@pytest.mark.parametrize("name", ["adam", "adamw", "adamp"])
def test_optimizer_takes_the_presets_settings(name: str) -> None:
    training = Training.model_validate(
        {"optimizer": {"name": name, "lr": 0.5, "weight_decay": 0.25}}
    )
    optimizer = make_optimizer(Net(), training, fused=True)
    assert type(optimizer).__name__.lower() == name
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert optimizer.param_groups[0]["weight_decay"] == 0.25


class Owner(pl.LightningModule):
    def __init__(self, method: nn.Module) -> None:
        super().__init__()
        self.method = method


class Steps:
    """Stands for the trainer, of which the average asks only the step."""

    global_step = 0


def test_average_follows_its_formula() -> None:
    torch.manual_seed(0)
    net, steps = Net(), Steps()
    average: Any = WeightAverage(net, decay=0.6)  # type: ignore[arg-type]
    average.on_train_start(steps, Owner(net))
    expected = net.head.weight.detach().clone()
    for step in range(1, 12):
        steps.global_step = step
        with torch.no_grad():
            net.head.weight.add_(torch.randn(1, 2))
            net.norm.running_mean.add_(1)  # type: ignore[union-attr, operator]
            net.norm.num_batches_tracked.add_(1)  # type: ignore[union-attr, operator]
            net.queue.push(torch.full((1, 2), float(step)))
        average.on_train_batch_end(steps)
        decay = min(0.6, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * net.head.weight.detach()
        torch.testing.assert_close(average.method.head.weight, expected)
    average.on_train_epoch_end(steps, Owner(net))
    assert average.method.norm.num_batches_tracked == 11
    assert average.method.queue.rows[:, 0].tolist() == [11, 10, 9]  # as the method's own
    assert 0 < average.method.norm.running_mean < 11
    assert not average.method.head.weight.requires_grad
    again: Any = WeightAverage(Net(), decay=0.6)  # type: ignore[arg-type]
    again.load_state_dict(average.state_dict())
    assert torch.equal(again.method.head.weight, average.method.head.weight)


def history(*rsums: float) -> History:
    return History([{RSUM: value} for value in rsums])


def test_best_is_the_first_of_the_highest() -> None:
    assert history(1.0, 4.0, 4.0).best == 1
    assert not history(1.0, 4.0, 4.0).improved
    assert history(1.0, 4.0, 4.5).improved


def test_end_by_epochs_or_patience() -> None:
    assert not history().ended(3, 1)
    assert history(1, 2, 3).ended(3, None)
    assert not history(1, 2).ended(3, None)
    assert not history(5, 4).ended(9, 2)
    assert history(5, 4, 5).ended(9, 2)


def test_seeds_of_epochs_and_processes_differ() -> None:
    drawn = set()
    for seed, epoch, rank in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)):
        reseed(seed, epoch, rank)
        drawn.add(float(torch.rand(())))
    assert len(drawn) == 4


def test_losses_see_float32() -> None:
    half = Embeddings(torch.ones(1, 1, 2).bfloat16(), entity_caption=torch.tensor([0]))
    full = half.float()
    assert full.vectors.dtype == torch.float32
    assert full.entity_caption is not None
    assert full.entity_caption.dtype == torch.int64


def gpus(count: int, bf16: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda emulated=True: bf16)
    monkeypatch.setattr(machine, "multiplies_bfloat16", lambda: bf16)


@pytest.mark.parametrize(
    ("count", "bf16", "asked", "expected"),
    [
        (0, False, {}, ("cpu", 1, "32-true")),
        (0, True, {}, ("cpu", 1, "bf16-mixed")),
        (0, False, {"devices": 2}, ("cpu", 2, "32-true")),
        (0, True, {"precision": "32-true"}, ("cpu", 1, "32-true")),
        (0, False, {"precision": "16-mixed"}, ("cpu", 1, "bf16-mixed")),
        (4, True, {}, ("gpu", 4, "bf16-mixed")),
        (4, False, {"devices": 1}, ("gpu", 1, "16-mixed")),
        (2, True, {"precision": "32-true"}, ("gpu", 2, "32-true")),
    ],
)
def test_devices_and_precision(
    count: int, bf16: bool, asked: dict, expected: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(count, bf16, monkeypatch)
    result = choose_machine(Training(**asked))
    assert (result.accelerator, result.devices, result.precision) == expected


@pytest.mark.parametrize(
    ("asked", "used", "reason"),
    [
        ("16-mixed", machine.Machine("cpu", 1, "bf16-mixed"), "CPU has no 16-mixed"),
        ("bf16-mixed", machine.Machine("cpu", 1, "bf16-mixed"), "preset"),
        ("auto", machine.Machine("gpu", 1, "16-mixed"), "this GPU does not multiply bfloat16"),
        ("auto", machine.Machine("gpu", 1, "bf16-mixed"), "this GPU multiplies bfloat16"),
        ("auto", machine.Machine("cpu", 1, "bf16-mixed"), "this CPU multiplies bfloat16"),
        ("auto", machine.Machine("cpu", 1, "32-true"), "this CPU does not multiply bfloat16"),
    ],
)
def test_the_line_about_precision_gives_its_reason(
    asked: Any, used: machine.Machine, reason: str
) -> None:
    line = machine.description(Training(precision=asked), used)
    assert reason in line and used.precision in line


def test_more_gpus_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(2, True, monkeypatch)
    with pytest.raises(ConfigError, match="4 GPUs asked for, but this host has 2"):
        choose_machine(Training(devices=4))


@pytest.fixture
def under_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two hosts with two processes each."""
    environment = {"TORCHELASTIC_RUN_ID": "x", "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "4"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("under_torchrun")
def test_torchrun_decides_on_devices_and_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(4, True, monkeypatch)
    result = choose_machine(Training())
    assert (result.accelerator, result.devices, result.nodes) == ("gpu", 2, 2)
    assert result.trainer_settings()["num_nodes"] == 2
    gpus(0, False, monkeypatch)
    assert choose_machine(Training(devices=2)) == machine.Machine("cpu", 2, "32-true", 2)


@pytest.mark.usefixtures("under_torchrun")
def test_torchrun_and_preset_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(0, True, monkeypatch)
    with pytest.raises(ConfigError, match="3 asked for, but torchrun started 2 processes"):
        choose_machine(Training(devices=3))
    with pytest.raises(ConfigError, match=r"30 images cannot .* 4 devices.* multiple of 4"):
        choose_machine(Training(images_per_batch=30))
    with pytest.raises(ConfigError, match=r"accumulate: 3. Set a multiple of 12"):
        choose_machine(Training(images_per_batch=32, accumulate=3))
    gpus(1, True, monkeypatch)
    with pytest.raises(ConfigError, match="2 GPUs asked for, but this host has 1"):
        choose_machine(Training())


def test_batch_norm_is_synchronised_on_gpus_only() -> None:
    assert machine.Machine("gpu", 2, "32-true").trainer_settings()["sync_batchnorm"]
    assert not machine.Machine("gpu", 1, "32-true").trainer_settings()["sync_batchnorm"]
    assert not machine.Machine("cpu", 2, "32-true").trainer_settings()["sync_batchnorm"]
