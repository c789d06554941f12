"""The progress bar of an epoch."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from rich.console import Console
from rich.progress import Progress, TaskID


class ProgressBar(pl.Callback):
    """A bar over the batches of the epoch; nothing if standard error is not a terminal."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task = TaskID(0)

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        console = Console(stderr=True)
        if trainer.is_global_zero and console.is_terminal:
            self._progress = Progress(console=console, transient=True)
            title = f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}"
            self._task = self._progress.add_task(title, total=trainer.num_training_batches)
            self._progress.start()

    def on_train_batch_end(self, *_: Any) -> None:
        if self._progress is not None:
            self._progress.advance(self._task)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._stop()

    def on_exception(self, *_: Any) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
