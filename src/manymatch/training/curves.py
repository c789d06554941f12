"""Training curves, written by dvclive: one point an epoch of each value.

dvclive comes with DVC (the extra `pipeline`), whose plots are what its files are for. Without it
training is the same but for the curves; each epoch's line is printed either way.
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
    """The curves of one run in `folder`, drawn anew from what `history` holds already: so a
    resumed run neither repeats nor lacks a point. Only the process of rank 0 draws."""

    def __init__(self, folder: Path, history: History) -> None:
        self._folder = folder
        self._live: Any = None
        if not first_process():
            return
        if Live is None:
            say("no training curves: dvclive is missing (pip install 'manymatch[pipeline]')")
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
            # Its last act is to remove a file that all runs of a checkout share: of runs that end
            # together, one finds it gone.
            with suppress(FileNotFoundError):
                self._live.end()

    def add(self, row: dict[str, float]) -> None:
        """The values of the next epoch."""
        if self._live is not None:
            with storage_errors(self._folder):
                for name, value in row.items():
                    self._live.log_metric(name, value)
                self._live.next_step()
