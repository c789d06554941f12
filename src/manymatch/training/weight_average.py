"""An exponential moving average of the weights, which is validated and saved in their place."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from manymatch.losses.pseudo_labels import Queue
from manymatch.methods.base import Method
from manymatch.training.lightning import pl


class WeightAverage(pl.Callback):
    """After step n: average = d * average + (1 - d) * weights, d = min(decay, (1 + n) / (10 + n)).

    The smaller d of the first steps lets the average forget the first weights. Floating-point
    buffers are averaged too. Integer buffers and the rows of queues are copied after each epoch: an
    average of different samples' rows would mean nothing.

    Args:
        method: the method, whose weights are copied.
        decay: the largest d.
    """

    def __init__(self, method: Method, decay: float) -> None:
        self.method = copy.deepcopy(method).requires_grad_(False)
        self._decay = decay
        self._floats: tuple[list[Tensor], list[Tensor]] = ([], [])
        self._copied: list[str] = []

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.method.to(pl_module.device)
        trained: Any = pl_module.method
        averages, weights = self.method.state_dict(), trained.state_dict()
        queues = [name for name, part in trained.named_modules() if isinstance(part, Queue)]
        self._copied = [
            key
            for key, value in averages.items()
            if key.rpartition(".")[0] in queues or not value.is_floating_point()
        ]
        names = [key for key in averages if key not in self._copied]
        pairs = [(averages[key], weights[key]) for key in names]
        self._floats = ([pair[0] for pair in pairs], [pair[1] for pair in pairs])

    @torch.no_grad()
    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        step = trainer.global_step
        decay = min(self._decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(*self._floats, 1 - decay)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        trained: Any = pl_module.method
        averages, weights = self.method.state_dict(), trained.state_dict()
        for key in self._copied:  # a queue has new rows, in a new tensor, after each step
            averages[key].copy_(weights[key])

    def state_dict(self) -> dict[str, Any]:
        return {"average": self.method.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.method.load_state_dict(state_dict["average"])
