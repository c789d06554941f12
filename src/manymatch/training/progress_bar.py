"""The progress bar of an epoch and of its validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import Progress, TaskID

from manymatch.training.lightning import pl
from manymatch.util.progress import Lines

Item = TypeVar("Item")


class Bar:
    """A bar that disappears at the end, or a line every ten seconds without a terminal."""

    def __init__(self, title: str, total: int) -> None:
        console = Console(stderr=True)
        self._progress: Progress | None = None
        self._task = TaskID(0)
        if console.is_terminal:
            self._progress = Progress(console=console, transient=True)
            self._task = self._progress.add_task(title, total=total)
            self._progress.start()
        self._lines = Lines(f"{title} (batches)", total)

    def advance(self) -> None:
        if self._progress is None:
            self._lines.advance()
        else:
            self._progress.advance(self._task)

    def stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def tracked(items: Iterable[Item], title: str, total: int) -> Iterator[Item]:
    """Yield `items` and show a bar."""
    bar = Bar(title, total)
    try:
        for item in items:
            yield item
            bar.advance()
    finally:
        bar.stop()


class ProgressBar(pl.Callback):
    """A bar over the batches of the epoch."""

    def __init__(self) -> None:
        self._bar: Bar | None = None

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.is_global_zero:
            title = f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}"
            self._bar = Bar(title, int(trainer.num_training_batches))

    def on_train_batch_end(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.advance()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._stop()

    def on_exception(self, *_: Any) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
