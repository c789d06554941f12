"""The optimiser, its learning rates, the average of the weights, and the history of epochs."""

import math

import adamp
import pytest
import torch
from torch import nn

from manymatch.config.preset import ParameterGroup, Training
from manymatch.losses.pseudo_labels import Queue
from manymatch.training.adamp import AdamP
from manymatch.training.loop import reseed
from manymatch.training.optimizer import (
    WeightAverage,
    learning_rate_factor,
    make_optimizer,
    parameter_groups,
    thaw,
)
from manymatch.util.errors import ConfigError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Linear(2, 2)
        self.head = nn.Linear(2, 1)
        self.norm = nn.BatchNorm1d(1)
        self.queue = Queue(3, 2)


def groups(*pairs):
    return [ParameterGroup(match=match, lr_scale=scale) for match, scale in pairs]


def test_parameters_go_to_the_first_group_they_match():
    net = Net()
    result = parameter_groups(net, groups(("bias$", 0.5), ("^cnn", 0.1)), lr=1.0)
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    assert [(group["lr"], [names[id(p)] for p in group["params"]]) for group in result] == [
        (0.5, ["cnn.bias", "head.bias", "norm.bias"]),
        (0.1, ["cnn.weight"]),
        (1.0, ["head.weight", "norm.weight"]),
    ]


def test_a_pattern_without_a_match_names_what_there_is():
    with pytest.raises(ConfigError, match=r"'vgg' \(names begin with: cnn, head, norm\)"):
        parameter_groups(Net(), groups(("vgg", 0.1)), lr=1.0)
    with pytest.raises(
        ConfigError, match=r"all parameters that '\^cnn' matches belong to groups be"
    ):
        parameter_groups(Net(), groups(("", 0.5), ("^cnn", 0.1)), lr=1.0)


def test_parameters_are_thawed_in_their_epoch_and_untouched_before():
    torch.manual_seed(0)
    net = Net()
    net.norm.weight.requires_grad_(False)  # a method's own choice, which stays
    settings = {"optimizer": {"weight_decay": 0.5, "lr": 0.1}}
    late = [ParameterGroup(match="^cnn|norm", from_epoch=2)]
    training = Training.model_validate(settings | {"parameter_groups": late})
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


def test_something_must_be_trained_from_the_start():
    for late in (ParameterGroup(match="", from_epoch=1), ParameterGroup(match="", lr_scale=0.0)):
        with pytest.raises(ConfigError, match="trained in the first epoch"):
            parameter_groups(Net(), [late], lr=1.0)


@pytest.mark.parametrize("name", ["adam", "adamw", "amsgrad", "adamp"])
def test_an_optimizer_and_its_groups_have_the_settings_of_the_preset(name):
    groups_of = [ParameterGroup(match="^cnn", weight_decay=0.25), ParameterGroup(match="bias")]
    settings = {"optimizer": {"name": name, "lr": 0.5, "weight_decay": 0.5}}
    training = Training.model_validate(settings | {"parameter_groups": groups_of})
    optimizer = make_optimizer(Net(), training, fused=True)
    assert type(optimizer).__name__.lower() == name.replace("amsgrad", "adam")
    assert optimizer.defaults.get("amsgrad", False) == (name == "amsgrad")
    assert [group["lr"] for group in optimizer.param_groups] == [0.5] * 3
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.25, 0.5, 0.5]


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize("turned", ["not", "rows", "whole"])
def test_adamp_gives_the_numbers_of_the_authors_package(weight_decay, turned):
    """Gradients as they come, orthogonal to every row of a matrix, or only to the whole matrix."""
    random = torch.Generator().manual_seed(0)

    def drawn(*shape):
        return torch.randn(*shape, generator=random)

    weights = [drawn(6, 20), drawn(8, 3, 2, 2), drawn(5), drawn(2, 1), torch.zeros(3, 4)]
    weights += [drawn(7, 20), drawn(4, 12), drawn(3, 5, 4)]  # rows as long as those of others
    ours, theirs = ([nn.Parameter(part.clone()) for part in weights] for _ in range(2))
    optimizers = (
        AdamP(ours, lr=0.05, weight_decay=weight_decay),
        adamp.AdamP(theirs, lr=0.05, weight_decay=weight_decay),
    )
    for step in range(5):
        for number, (own, other) in enumerate(zip(ours, theirs, strict=True)):
            gradient = drawn(*own.shape)
            if turned != "not" and own.ndim > 1 and number != 5:
                view = (len(own), -1) if turned == "rows" else (1, -1)
                weight, slope = other.detach().view(view), gradient.view(view)
                size = weight.square().sum(1, keepdim=True).clamp(min=1e-12)
                slope -= weight * (weight * slope).sum(1, keepdim=True) / size
            # A parameter without gradient in the first step is one step behind the others.
            late = number == 0 and step == 0
            own.grad, other.grad = (None, None) if late else (gradient, gradient.clone())
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
    for own, other in zip(*(optimizer.state.values() for optimizer in optimizers), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-6, atol=1e-6)


def cosine(steps, length, height=1.0):
    return [height * (1 + math.cos(math.pi * n / length)) / 2 for n in range(steps)]


@pytest.mark.parametrize(
    ("epochs", "steps", "schedule", "expected"),
    [
        (2, 3, {"name": "constant"}, [1.0] * 6),
        (5, 2, {"name": "step", "every": 2}, [1, 1, 1, 1, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01]),
        (5, 2, {"name": "step", "milestones": (1, 4)}, [1, 1, *[0.1] * 6, 0.01, 0.01]),
        (2, 5, {}, cosine(10, 10)),
        (
            5,
            2,
            {"restarts": (2, 3), "warmup_epochs": 0.5},
            [1, *cosine(3, 3), 0.1, 0.05, *cosine(4, 4, 0.01)],
        ),
        # PCME on CUB: a period of 50 epochs in both phases of 10 and 50 epochs, here at a tenth.
        (6, 10, {"restarts": (1,), "period": 5, "factor": 1.0}, [*cosine(10, 50), *cosine(50, 50)]),
        (4, 2, {"period": 2}, [*cosine(4, 4), *[0] * 4]),
        (1, 4, {"warmup_epochs": 1.0}, [0.25, 0.5, 0.75, 1.0]),
        (2, 4, {"name": "constant", "warmup_epochs": 1.5}, [n / 6 for n in range(1, 7)] + [1, 1]),
        (2, 4, {"name": "step", "every": 9, "warmup_epochs": 0.5}, [0.5, *[1] * 7]),
    ],
)
def test_learning_rate_follows_the_schedule(epochs, steps, schedule, expected):
    training = Training.model_validate({"epochs": epochs, "schedule": schedule})
    factors = [learning_rate_factor(step, steps, training) for step in range(epochs * steps)]
    assert factors == pytest.approx(expected)


@pytest.mark.parametrize("key", ["restarts", "milestones"])
def test_epochs_of_a_schedule_must_rise(key):
    with pytest.raises(ValueError, match="ascending"):
        Training.model_validate({"schedule": {key: (3, 3)}})


def test_average_follows_its_formula():
    torch.manual_seed(0)
    net = Net()
    average = WeightAverage(net, decay=0.6)
    expected = net.head.weight.detach().clone()
    net.head.weight.data = expected.clone()  # new memory, as a GRU's on a GPU
    for step in range(1, 12):
        with torch.no_grad():
            net.head.weight.add_(torch.randn(1, 2))
            net.norm.running_mean.add_(1)
            net.norm.num_batches_tracked.add_(1)
            net.queue.push(torch.full((1, 2), float(step)))
        average.update(step)
        decay = min(0.6, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * net.head.weight.detach()
        torch.testing.assert_close(average.method.head.weight, expected)
    average.copy_rest()
    assert average.method.norm.num_batches_tracked == 11
    assert average.method.queue.rows[:, 0].tolist() == [11, 10, 9]  # as the method's own
    assert 0 < average.method.norm.running_mean < 11
    assert not average.method.head.weight.requires_grad
    again = WeightAverage(Net(), decay=0.6)
    again.load_state_dict(average.state_dict())
    assert torch.equal(again.method.head.weight, average.method.head.weight)


def test_seeds_of_epochs_and_processes_differ():
    drawn = set()
    for seed, epoch, rank in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)):
        reseed(seed, epoch, rank)
        drawn.add(float(torch.rand(())))
    assert len(drawn) == 4
