"""The progress bar of an epoch."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from rich.console import Console
from rich.progress import Progress, TaskID

from manymatch.system.progress import Lines


class ProgressBar(pl.Callback):
    """A bar over the batches of the epoch, or a line every ten seconds without a terminal."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task = TaskID(0)
        self._lines: Lines | None = None

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        console, total = Console(stderr=True), int(trainer.num_training_batches)
        title = f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}"
        if console.is_terminal:
            self._progress = Progress(console=console, transient=True)
            self._task = self._progress.add_task(title, total=total)
            self._progress.start()
        else:
            self._lines = Lines(f"{title} (batches)", total)

    def on_train_batch_end(self, *_: Any) -> None:
        if self._progress is not None:
            self._progress.advance(self._task)
        elif self._lines is not None:
            self._lines.advance()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._stop()

    def on_exception(self, *_: Any) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
