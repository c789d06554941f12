"""An exponential moving average of the weights, which is validated and kept in their place."""

from __future__ import annotations

import copy
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from manymatch.methods.base import Method


class WeightAverage(pl.Callback):
    """After step n: average = d * average + (1 - d) * weights, d = min(decay, (1 + n) / (10 + n)).

    The smaller d of the first steps lets the average forget where training began. Buffers are
    averaged alike; whole numbers among them are copied.
    """

    def __init__(self, method: Method, decay: float) -> None:
        self.method = copy.deepcopy(method).requires_grad_(False)
        self._decay = decay
        self._floats: tuple[list[Tensor], list[Tensor]] = ([], [])
        self._others: list[tuple[Tensor, Tensor]] = []

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.method.to(pl_module.device)
        trained: Any = pl_module.method
        ours, theirs = self.method.state_dict(), trained.state_dict()
        pairs = [(value, theirs[key]) for key, value in ours.items()]
        floats = [pair for pair in pairs if pair[0].is_floating_point()]
        self._floats = ([pair[0] for pair in floats], [pair[1] for pair in floats])
        self._others = [pair for pair in pairs if not pair[0].is_floating_point()]

    @torch.no_grad()
    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        step = trainer.global_step
        decay = min(self._decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(*self._floats, 1 - decay)
        for ours, theirs in self._others:
            ours.copy_(theirs)

    def state_dict(self) -> dict[str, Any]:
        return {"average": self.method.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.method.load_state_dict(state_dict["average"])
