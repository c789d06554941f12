"""The optimiser of a recipe over the parameters of a method."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.optim import Adam, AdamW, Optimizer

from manymatch.config.recipe import ParameterGroup, Training
from manymatch.errors import ConfigError

_KINDS: dict[str, type[Optimizer]] = {"adamw": AdamW, "adam": Adam}


def make_optimizer(method: nn.Module, training: Training, fused: bool) -> Optimizer:
    """The recipe's optimiser with its parameter groups.

    `fused`: one kernel for all parameters, several times faster on the CPU; mixed precision,
    whose gradients must be unscaled before they are clipped, cannot have it.
    """
    settings = training.optimizer
    groups = parameter_groups(method, training.parameter_groups, settings.lr)
    kind: Any = _KINDS[settings.name]
    return kind(groups, lr=settings.lr, weight_decay=settings.weight_decay, fused=fused)


def parameter_groups(
    method: nn.Module, groups: Sequence[ParameterGroup], lr: float
) -> list[dict[str, Any]]:
    """Trainable parameters by learning rate; a parameter belongs to the first group it matches.

    Those with a scale of 0 are frozen. A pattern that no parameter matches is a `ConfigError`.
    """
    patterns = [_pattern(group) for group in groups]
    members: list[list[nn.Parameter]] = [[] for _ in range(len(groups) + 1)]
    matched = [False] * len(groups)
    for name, parameter in method.named_parameters():
        hits = [n for n, pattern in enumerate(patterns) if pattern.search(name)]
        for hit in hits:
            matched[hit] = True
        members[hits[0] if hits else -1].append(parameter)
    _refuse_unmatched(groups, matched, method)
    scales = [*(group.lr_scale for group in groups), 1.0]
    for scale, parameters in zip(scales, members, strict=True):
        for parameter in parameters:
            parameter.requires_grad_(parameter.requires_grad and scale > 0)
    return [
        {"params": trainable, "lr": lr * scale}
        for scale, parameters in zip(scales, members, strict=True)
        if (trainable := [parameter for parameter in parameters if parameter.requires_grad])
    ]


def _pattern(group: ParameterGroup) -> re.Pattern[str]:
    try:
        return re.compile(group.match)
    except re.error as error:
        raise ConfigError(
            f"training.parameter_groups: '{group.match}' is not a regular expression: {error}"
        ) from None


def _refuse_unmatched(
    groups: Sequence[ParameterGroup], matched: list[bool], method: nn.Module
) -> None:
    for group, hit in zip(groups, matched, strict=True):
        if not hit:
            known = sorted({name.split(".")[0] for name, _ in method.named_parameters()})
            raise ConfigError(
                f"training.parameter_groups: no parameter matches '{group.match}' "
                f"(names begin with: {', '.join(known)})"
            )
