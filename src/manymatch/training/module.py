"""A method as a LightningModule: the training step and the start of an epoch."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from manymatch.batch.batch import Batch
from manymatch.config.preset import Preset
from manymatch.methods.base import Method
from manymatch.training.accumulation import encoded
from manymatch.training.data import Data, TrainingBatches
from manymatch.training.gather import gather
from manymatch.training.lightning import pl
from manymatch.training.optimizer import make_optimizer, thaw
from manymatch.training.schedule import learning_rate_factor


class Learner(pl.LightningModule):
    """Trains a method as its preset says."""

    def __init__(self, method: Method, preset: Preset, data: Data) -> None:
        super().__init__()
        self.method = method
        self.preset = preset
        self.data = data
        self._sums: dict[str, Tensor] = {}

    def setup(self, stage: str) -> None:
        """Make the batches of this process; Lightning calls this when all processes exist."""
        self.batches = TrainingBatches(
            self.preset,
            self.data,
            rank=self.trainer.global_rank,
            world=self.trainer.world_size,
            device=self.trainer.strategy.root_device,
            here=self.trainer.num_devices,
        )

    def train_dataloader(self) -> TrainingBatches:
        return self.batches

    def configure_optimizers(self) -> Any:
        training, steps = self.preset.training, len(self.batches)
        optimizer = make_optimizer(
            self.method, training, fused=self.trainer.precision != "16-mixed"
        )
        scheduler = LambdaLR(optimizer, lambda step: learning_rate_factor(step, steps, training))
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip as Lightning does, but also before a fused optimiser in `bf16-mixed`: Lightning
        refuses that, although only `16-mixed` has gradients to be unscaled first."""
        if gradient_clip_val:
            self.trainer.precision_plugin.clip_grad_by_norm(optimizer, gradient_clip_val)

    def on_train_epoch_start(self) -> None:
        # The seed depends on the epoch, so that an epoch of a resumed run is the same.
        reseed(self.preset.seed, self.current_epoch, self.global_rank)
        self.batches.epoch = self.current_epoch
        self._sums = {}
        thaw(self.trainer.optimizers[0], self.current_epoch)
        self.method.start_epoch(self.current_epoch)

    def training_step(self, parts: tuple[Batch, ...], index: int) -> Tensor:
        self.method.start_step(self.current_epoch + (index + 1) / len(self.batches))
        images, texts, image_index = encoded(self.method, parts)
        with torch.autocast(self.device.type, enabled=False):
            images, texts, image_index = gather(images.float(), texts.float(), image_index)
            terms = self.method.loss(images, texts, replace(parts[0], image_index=image_index))
        for name, term in terms.items():
            self._sums[name] = self._sums.get(name, 0.0) + term.detach()
        return torch.stack(list(terms.values())).sum()

    def last_learning_rate(self) -> float:
        """The learning rate of the last step, for parameters whose `lr_scale` is 1."""
        training, step = self.preset.training, self.global_step - 1
        return training.optimizer.lr * learning_rate_factor(step, len(self.batches), training)

    def epoch_losses(self) -> dict[str, float]:
        """The mean of each term over the batches of the epoch, and their sum as `loss`."""
        means = {name: float(total) / len(self.batches) for name, total in self._sums.items()}
        return {"loss": sum(means.values()), **means}


def reseed(seed: int, epoch: int, rank: int) -> None:
    """Seed every random generator of this process for one epoch."""
    state = np.random.SeedSequence([seed, epoch, rank]).generate_state(1)[0]
    random.seed(int(state))
    np.random.seed(int(state))
    torch.manual_seed(int(state))
