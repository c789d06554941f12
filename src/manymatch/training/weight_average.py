"""An exponential moving average of the weights, which is validated and saved in their place."""

from __future__ import annotations

import copy
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from manymatch.methods.base import Method


class WeightAverage(pl.Callback):
    """After step n: average = d * average + (1 - d) * weights, d = min(decay, (1 + n) / (10 + n)).

    The smaller d of the first steps lets the average forget the first weights. Floating-point
    buffers are averaged too; integer buffers are copied.

    Args:
        method: the method, whose weights are copied.
        decay: the largest d.
    """

    def __init__(self, method: Method, decay: float) -> None:
        self.method = copy.deepcopy(method).requires_grad_(False)
        self._decay = decay
        self._floats: tuple[list[Tensor], list[Tensor]] = ([], [])
        self._others: list[tuple[Tensor, Tensor]] = []

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.method.to(pl_module.device)
        trained: Any = pl_module.method
        averages, weights = self.method.state_dict(), trained.state_dict()
        pairs = [(value, weights[key]) for key, value in averages.items()]
        floats = [pair for pair in pairs if pair[0].is_floating_point()]
        self._floats = ([pair[0] for pair in floats], [pair[1] for pair in floats])
        self._others = [pair for pair in pairs if not pair[0].is_floating_point()]

    @torch.no_grad()
    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        step = trainer.global_step
        decay = min(self._decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(*self._floats, 1 - decay)
        for average, value in self._others:
            average.copy_(value)

    def state_dict(self) -> dict[str, Any]:
        return {"average": self.method.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.method.load_state_dict(state_dict["average"])
