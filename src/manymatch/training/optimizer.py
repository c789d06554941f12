"""The optimiser of a preset, its learning rates over time, and the average of the weights."""

import copy
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim import Adam, AdamW, Optimizer

from manymatch.config.preset import ParameterGroup, Training, names_matching
from manymatch.losses.pseudo_labels import Queue
from manymatch.methods.shared.method import Method
from manymatch.networks.backbones.learning import parameter_depths
from manymatch.networks.encoders.hub_image import HubImageEncoder
from manymatch.networks.encoders.hub_text import TokenEncoder
from manymatch.training.adamp import AdamP
from manymatch.util.errors import ConfigError

_FUSABLE: dict[str, Callable[..., Optimizer]] = {
    "adamw": AdamW,
    "adam": Adam,
    "amsgrad": partial(Adam, amsgrad=True),
}


def make_optimizer(method: nn.Module, training: Training, fused: bool) -> Optimizer:
    """The preset's optimiser with its parameter groups.

    `fused` is one kernel for all parameters, several times faster on the CPU. `16-mixed` cannot use
    it: gradients must be unscaled before they are clipped. Then a GPU has a few kernels for each
    operation (foreach). AdamP has no fused kernel.
    """
    settings = training.optimizer
    groups = parameter_groups(method, training.parameter_groups, settings.lr)
    common = {"lr": settings.lr, "weight_decay": settings.weight_decay}
    if settings.name == "adamp":
        return AdamP(groups, **common)
    # `False` would switch off `foreach` too.
    return _FUSABLE[settings.name](groups, **common, fused=fused or None)


def parameter_groups(
    method: nn.Module, groups: Sequence[ParameterGroup], lr: float
) -> list[dict[str, Any]]:
    """Trainable parameters as groups of an optimiser, each with its `from_epoch` for `thaw`.

    A parameter belongs to the first group whose pattern it matches. Parameters of a group with
    `lr_scale: 0` are frozen. A group with `layer_decay` becomes one for each layer.

    Raises:
        ConfigError: no parameter is left for a pattern, or none is trained in the first epoch.

    References:
        Clark et al., ELECTRA, ICLR 2020, and Bao et al., BEiT, ICLR 2022 (layer-wise decay).
    """
    all_groups = [*groups, ParameterGroup(match="")]
    members = _members(method, groups)
    settings: list[dict[str, Any]] = []
    for group, parameters in zip(all_groups, members, strict=True):
        for parameter in parameters:
            parameter.requires_grad_(parameter.requires_grad and group.lr_scale > 0)
        trainable = [parameter for parameter in parameters if parameter.requires_grad]
        decay = {} if group.weight_decay is None else {"weight_decay": group.weight_decay}
        for depth, members_of_layer in _by_depth(method, trainable, group).items():
            highest = lr * group.lr_scale * group.layer_decay**depth
            rates = {"lr": highest, "highest_lr": highest, "from_epoch": group.from_epoch}
            settings.append({"params": members_of_layer, **rates, **decay})
    if all(group["from_epoch"] for group in settings):
        raise ConfigError(
            "training.parameter_groups: no parameter is trained in the first epoch. Give one group "
            "from_epoch: 0 and an lr_scale above 0."
        )
    return settings


def _by_depth(
    method: nn.Module, parameters: list[nn.Parameter], group: ParameterGroup
) -> dict[int, list[nn.Parameter]]:
    """The parameters by the exponent of the group's `layer_decay`."""
    depths: dict[nn.Parameter, int] = {}
    if group.layer_decay < 1:
        members = {*parameters}
        encoders = (p for p in method.modules() if isinstance(p, HubImageEncoder | TokenEncoder))
        for tower in (encoder.tower for encoder in encoders):
            if not members.isdisjoint(tower.parameters()):
                depths |= parameter_depths(tower)
        if not depths:
            raise ConfigError(
                f"training.parameter_groups: layer_decay: '{group.match}' matches no trained "
                "parameter of a model of transformers. Leave layer_decay out."
            )
    layers: dict[int, list[nn.Parameter]] = {}
    for parameter in parameters:
        layers.setdefault(depths.get(parameter, 0), []).append(parameter)
    return layers


def thaw(optimizer: Optimizer, epoch: int) -> None:
    """Freeze the groups whose `from_epoch` is after `epoch` (0-based), and thaw the others.

    The optimiser holds all parameters from the start, so that its state can be saved and loaded in
    any epoch. It skips parameters without gradient; their moments begin when they are thawed.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.requires_grad_(epoch >= group["from_epoch"])


def _members(method: nn.Module, groups: Sequence[ParameterGroup]) -> list[list[nn.Parameter]]:
    """The parameters of each group, and in the last list the parameters without a group."""
    names = [name for name, _ in method.named_parameters()]
    matched = [names_matching(group.match, names) for group in groups]
    for group, hit in zip(groups, matched, strict=True):
        if not hit:
            known = sorted({name.split(".")[0] for name in names})
            raise ConfigError(
                f"training.parameter_groups: no parameter matches '{group.match}' "
                f"(names begin with: {', '.join(known)}). Correct the expression."
            )
    members: list[list[nn.Parameter]] = [[] for _ in range(len(groups) + 1)]
    for name, parameter in method.named_parameters():
        hits = [n for n, hit in enumerate(matched) if name in hit]
        members[hits[0] if hits else -1].append(parameter)
    for group, found in zip(groups, members, strict=False):
        if not found:
            raise ConfigError(
                f"training.parameter_groups: all parameters that '{group.match}' matches belong to "
                "groups before it. Move the group to an earlier place, or remove the group."
            )
    return members


def set_learning_rates(optimizer: Optimizer, factor: float) -> None:
    """Set the learning rate of each group to `factor` times its highest."""
    for group in optimizer.param_groups:
        group["lr"] = group["highest_lr"] * factor


def learning_rate_factor(step: int, steps_per_epoch: int, training: Training) -> float:
    """The factor at `step` (0-based) of a training with `steps_per_epoch`.

    Warm-up rises linearly to 1. Then `cosine` falls to zero within `period` epochs or, without a
    period, until the next of `restarts` or the last step; at each restart the factor starts anew
    at `factor` of its height. `step` falls by `factor` after every `every` epochs, or after each
    of `milestones`. All epochs count from the start of training.
    """
    schedule = training.schedule
    warmup = schedule.warmup_epochs * steps_per_epoch
    if step < warmup:
        return min(1.0, (step + 1) / warmup)
    if schedule.name == "cosine":
        restarts = [epoch * steps_per_epoch for epoch in schedule.restarts]
        phase = sum(step >= restart for restart in restarts)
        begun = [warmup, *restarts][phase]
        if schedule.period is None:
            length = [*restarts, training.epochs * steps_per_epoch][phase] - begun
        else:
            length = schedule.period * steps_per_epoch
        height: float = schedule.factor**phase
        return height * 0.5 * (1 + math.cos(math.pi * min(1.0, (step - begun) / length)))
    if schedule.name == "constant":
        return 1.0
    epochs = step // steps_per_epoch
    if schedule.milestones is None:
        return schedule.factor ** (epochs // schedule.every)
    return schedule.factor ** sum(epochs >= milestone for milestone in schedule.milestones)


class WeightAverage:
    """An exponential moving average of the weights, which is validated and saved in their place.

    After step n: average = d * average + (1 - d) * weights, d = min(decay, (1 + n) / (10 + n)). The
    smaller d of the first steps lets the average forget the first weights. Floating-point buffers
    are averaged too. Integer buffers and the rows of queues are copied after each epoch: an average
    of different samples' rows would mean nothing.

    Args:
        method: the method, on its device, whose weights are copied and then followed.
        decay: the largest d.
    """

    def __init__(self, method: Method, decay: float) -> None:
        self.method = copy.deepcopy(method).requires_grad_(False)
        self._trained, self._decay = method, decay
        queues = [name for name, part in method.named_modules() if isinstance(part, Queue)]
        # The parameters themselves: on a GPU a GRU gives its parameters new memory whenever it is
        # moved, as `Fabric.setup` does, and other tensors would keep the old memory.
        averages, weights = (part.state_dict(keep_vars=True) for part in (self.method, method))
        self._copied = [
            key
            for key, value in averages.items()
            if key.rpartition(".")[0] in queues or not value.is_floating_point()
        ]
        names = [key for key in averages if key not in self._copied]
        self._averages = [averages[key] for key in names]
        self._weights = [weights[key] for key in names]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Follow the weights after `step` steps."""
        decay = min(self._decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self._averages, self._weights, 1 - decay)

    def copy_rest(self) -> None:
        """Copy the buffers that have no average. A queue has a new tensor after each step."""
        averages, weights = self.method.state_dict(), self._trained.state_dict()
        for key in self._copied:
            averages[key].copy_(weights[key])

    def state_dict(self) -> dict[str, Any]:
        return self.method.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.method.load_state_dict(state)
