"""A method as a LightningModule: what happens in a training step and at an epoch's start."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from manymatch.config.preset import Preset
from manymatch.methods.base import Embeddings, Method
from manymatch.shards.batch import Batch
from manymatch.training.data import Data, TrainingBatches
from manymatch.training.gather import gather
from manymatch.training.optimizer import make_optimizer, thaw
from manymatch.training.schedule import learning_rate_factor


class Learner(pl.LightningModule):
    """Trains any method by its preset."""

    def __init__(self, method: Method, preset: Preset, data: Data) -> None:
        super().__init__()
        self.method = method
        self.preset = preset
        self.data = data
        self._sums: dict[str, Tensor] = {}

    def setup(self, stage: str) -> None:
        """The batches of this process; called once the processes are known."""
        self.batches = TrainingBatches(
            self.preset,
            self.data,
            rank=self.trainer.global_rank,
            world=self.trainer.world_size,
            gpu=self.trainer.strategy.root_device.type == "cuda",
        )

    def train_dataloader(self) -> TrainingBatches:
        return self.batches

    def configure_optimizers(self) -> Any:
        training, steps = self.preset.training, len(self.batches)
        optimizer = make_optimizer(self.method, training, fused=self.trainer.precision == "32-true")
        scheduler = LambdaLR(optimizer, lambda step: learning_rate_factor(step, steps, training))
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]

    def on_train_epoch_start(self) -> None:
        # From (seed, epoch), so that an epoch is the same whether or not the run was resumed.
        reseed(self.preset.seed, self.current_epoch, self.global_rank)
        self.batches.epoch = self.current_epoch
        self._sums = {}
        thaw(self.trainer.optimizers[0], self.current_epoch)
        self.method.start_epoch(self.current_epoch)

    def training_step(self, batch: Batch, index: int) -> Tensor:
        self.method.start_step(self.current_epoch + index / len(self.batches))
        images = self.method.encode_images(batch)
        texts = self.method.encode_texts(batch)
        with torch.autocast(self.device.type, enabled=False):
            terms = self._loss(images.float(), texts.float(), batch)
        for name, term in terms.items():
            self._sums[name] = self._sums.get(name, 0.0) + term.detach()
        return torch.stack(list(terms.values())).sum()

    def _loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        images, texts, owner = gather(images, texts, batch.owner)
        return self.method.loss(images, texts, replace(batch, owner=owner))

    def last_learning_rate(self) -> float:
        """That of the step before, for parameters of scale 1."""
        training, step = self.preset.training, self.global_step - 1
        return training.optimizer.lr * learning_rate_factor(step, len(self.batches), training)

    def epoch_losses(self) -> dict[str, float]:
        """The mean over the epoch's batches of each term, and of their sum as `loss`."""
        means = {name: float(total) / len(self.batches) for name, total in self._sums.items()}
        return {"loss": sum(means.values()), **means}


def reseed(seed: int, epoch: int, rank: int) -> None:
    """Seed every random generator of this process for one epoch."""
    state = np.random.SeedSequence([seed, epoch, rank]).generate_state(1)[0]
    random.seed(int(state))
    np.random.seed(int(state))
    torch.manual_seed(int(state))
