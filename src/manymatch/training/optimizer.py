"""The optimiser of a preset over the parameters of a method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.optim import Adam, AdamW, Optimizer

from manymatch.config.preset import ParameterGroup, Training, names_matching
from manymatch.training.adamp import AdamP
from manymatch.util.errors import ConfigError

_FUSABLE: dict[str, type[Optimizer]] = {"adamw": AdamW, "adam": Adam}


def make_optimizer(method: nn.Module, training: Training, fused: bool) -> Optimizer:
    """The preset's optimiser with its parameter groups.

    Args:
        method: the method to train.
        training: the settings.
        fused: one kernel for all parameters, several times faster on the CPU. `16-mixed` cannot
            use it: gradients must be unscaled before they are clipped. AdamP has no
            such kernel.
    """
    settings = training.optimizer
    groups = parameter_groups(method, training.parameter_groups, settings.lr)
    common = {"lr": settings.lr, "weight_decay": settings.weight_decay}
    if settings.name == "adamp":
        return AdamP(groups, **common)
    kind: Any = _FUSABLE[settings.name]
    return kind(groups, **common, fused=fused)


def parameter_groups(
    method: nn.Module, groups: Sequence[ParameterGroup], lr: float
) -> list[dict[str, Any]]:
    """Trainable parameters as groups of an optimiser, each with its `from_epoch` for `thaw`.

    A parameter belongs to the first group whose pattern it matches. Parameters of a group with
    `lr_scale: 0` are frozen.

    Raises:
        ConfigError: no parameter matches a pattern, or no parameter is trained in the first epoch.
    """
    all_groups = [*groups, ParameterGroup(match="")]
    members = _members(method, groups)
    for group, parameters in zip(all_groups, members, strict=True):
        for parameter in parameters:
            parameter.requires_grad_(parameter.requires_grad and group.lr_scale > 0)
    settings = [
        _settings(group, lr) | {"params": trainable}
        for group, parameters in zip(all_groups, members, strict=True)
        if (trainable := [parameter for parameter in parameters if parameter.requires_grad])
    ]
    if all(group["from_epoch"] for group in settings):
        raise ConfigError(
            "training.parameter_groups: no parameter is trained in the first epoch. Give one group "
            "from_epoch: 0 and an lr_scale above 0."
        )
    return settings


def thaw(optimizer: Optimizer, epoch: int) -> None:
    """Freeze the groups whose `from_epoch` is after `epoch` (0-based), and thaw the others.

    The optimiser holds all parameters from the start, so that its state can be saved and loaded in
    any epoch. It skips parameters without gradient; their moments begin when they are thawed.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.requires_grad_(epoch >= group["from_epoch"])


def _settings(group: ParameterGroup, lr: float) -> dict[str, Any]:
    decay = {} if group.weight_decay is None else {"weight_decay": group.weight_decay}
    return {"lr": lr * group.lr_scale, "from_epoch": group.from_epoch, **decay}


def _members(method: nn.Module, groups: Sequence[ParameterGroup]) -> list[list[nn.Parameter]]:
    """The parameters of each group, and in the last list the parameters without a group."""
    names = [name for name, _ in method.named_parameters()]
    matched = [names_matching(group.match, names) for group in groups]
    members: list[list[nn.Parameter]] = [[] for _ in range(len(groups) + 1)]
    for name, parameter in method.named_parameters():
        hits = [n for n, hit in enumerate(matched) if name in hit]
        members[hits[0] if hits else -1].append(parameter)
    _refuse_unmatched(groups, matched, method)
    return members


def _refuse_unmatched(
    groups: Sequence[ParameterGroup], matched: Sequence[set[str]], method: nn.Module
) -> None:
    for group, hit in zip(groups, matched, strict=True):
        if not hit:
            known = sorted({name.split(".")[0] for name, _ in method.named_parameters()})
            raise ConfigError(
                f"training.parameter_groups: no parameter matches '{group.match}' "
                f"(names begin with: {', '.join(known)}). Correct the expression."
            )
