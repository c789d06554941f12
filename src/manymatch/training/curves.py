"""Training curves, written by dvclive: each value gets one point for each epoch.

dvclive comes with DVC (the extra `pipeline`) and writes the files of DVC's plots. Without dvclive
training writes no curves and is otherwise the same; it prints a line for each epoch in any case.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from manymatch.system.files import storage_errors
from manymatch.system.progress import say
from manymatch.training.history import History
from manymatch.training.machine import first_process

try:
    from dvclive import Live
except ImportError:
    Live = None  # type: ignore[assignment, misc]


class Curves:
    """The curves of one run in `folder`. They begin with the points of `history`, so a resumed run
    neither repeats nor lacks a point. Only the process of rank 0 writes."""

    def __init__(self, folder: Path, history: History) -> None:
        self._folder = folder
        self._live: Any = None
        if not first_process():
            return
        if Live is None:
            say("no training curves: dvclive is missing. Run pip install 'manymatch[pipeline]'.")
            return
        self._live = Live(str(folder), dvcyaml=False, save_dvc_exp=False)
        for row in history.rows:
            self.add(row)

    def __enter__(self) -> Curves:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            # dvclive ends by removing a file that all runs of a checkout share. If two runs end
            # together, the second finds no file.
            with suppress(FileNotFoundError):
                self._live.end()
            # dvclive's summary is no output of the stage, and the report depends on this folder.
            (self._folder / "metrics.json").unlink(missing_ok=True)

    def add(self, row: dict[str, float]) -> None:
        """Write the values of the next epoch."""
        if self._live is not None:
            with storage_errors(self._folder):
                for name, value in row.items():
                    self._live.log_metric(name, value)
                self._live.next_step()
