"""The work after each epoch, in an order that allows a kill at any moment."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from torch import distributed

from manymatch.methods.base import Method
from manymatch.training.checkpoints import Checkpoints
from manymatch.training.curves import Curves
from manymatch.training.history import RSUM, History
from manymatch.training.lightning import pl
from manymatch.training.module import Learner
from manymatch.training.validation import validate
from manymatch.util.errors import DivergenceError
from manymatch.util.progress import say

AfterEpoch = Callable[[History], None]
"""Called after each epoch, when the checkpoint of the epoch is whole. An exception ends training,
which may be resumed."""


class EpochEnd(pl.Callback):
    """Validates, saves the best weights, then the state; writes the curves; may stop training.

    All processes embed the validation split; the process of rank 0 ranks it and writes. The others
    wait for its recalls.

    Args:
        evaluated: the weights to validate and save: the trained method, or its average.
        history: the earlier epochs of a resumed run; each epoch adds a row.
        checkpoints: the folder of weights and state.
        curves: the training curves.
        end_of_epoch: see `AfterEpoch`.
    """

    def __init__(
        self,
        evaluated: Method,
        history: History,
        checkpoints: Checkpoints,
        curves: Curves,
        end_of_epoch: AfterEpoch | None = None,
    ) -> None:
        self._evaluated = evaluated
        self._history = history
        self._checkpoints = checkpoints
        self._curves = curves
        self._end_of_epoch = end_of_epoch
        self._started = 0.0

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._started = time.monotonic()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, Learner)
        training = pl_module.preset.training
        row = self._row(trainer, pl_module)
        self._history.rows.append(row)
        if trainer.is_global_zero and self._history.improved:
            self._checkpoints.save_best(
                self._evaluated, pl_module.preset.method, self._history.best
            )
        self._checkpoints.save_last(trainer, self._history)
        if trainer.is_global_zero:
            self._curves.add(row)
            self._report_epoch(training.epochs)
        trainer.should_stop = self._history.ended(training.epochs, training.patience)
        if self._end_of_epoch is not None:
            self._end_of_epoch(self._history)

    def _report_epoch(self, epochs: int) -> None:
        row, best = self._history.rows[-1], " (best)" if self._history.improved else ""
        say(
            f"epoch {len(self._history.rows)}/{epochs}: loss {row['train/loss']:.4f}, "
            f"validation rsum {row[RSUM]:.1f}{best}, {time.monotonic() - self._started:.1f} s"
        )

    def _row(self, trainer: pl.Trainer, learner: Learner) -> dict[str, float]:
        losses = learner.epoch_losses()
        _refuse_divergence(losses, trainer.current_epoch)
        images = learner.preset.training.images_per_batch
        if trainer.world_size > 1:
            for buffer in self._evaluated.buffers():
                distributed.broadcast(buffer, 0)
        share = trainer.global_rank, trainer.world_size
        recalls = validate(self._evaluated, learner.data, images, learner.device, *share)
        recalls = trainer.strategy.broadcast(recalls)
        return {
            **{f"train/{name}": value for name, value in losses.items()},
            **{f"validation/{name}": value for name, value in recalls.items()},
            "learning_rate": learner.last_learning_rate(),
        }


def _refuse_divergence(losses: dict[str, float], epoch: int) -> None:
    for name, value in losses.items():
        if not math.isfinite(value):
            raise DivergenceError(
                f"training diverged: the loss '{name}' is {value} in epoch {epoch + 1}. "
                "Lower training.optimizer.lr, or raise training.schedule.warmup_epochs."
            )
