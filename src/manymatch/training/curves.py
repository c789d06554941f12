"""Training curves, written by dvclive: one point of each value for every epoch.

dvclive belongs to DVC (the extra `pipeline`), whose plots read its files. Without dvclive a
training writes no curves and is otherwise the same.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from manymatch.training.helpers import first_process
from manymatch.training.history import History
from manymatch.util.errors import StorageError
from manymatch.util.files import storage_errors
from manymatch.util.progress import say

try:
    from dvclive import Live
except ImportError:
    Live = None  # type: ignore[assignment, misc]


class Curves:
    """The curves of one run in `folder`.

    A resumed run writes them anew from its `history`, so that no point is repeated or missing. Only
    the process of rank 0 writes.
    """

    def __init__(self, folder: Path, history: History) -> None:
        self._folder, self._history = folder, history
        self._live: Any = None
        if not first_process():
            return
        if Live is None:
            say("no training curves: dvclive is missing. Run pip install 'manymatch[pipeline]'.")
            return
        self._start()

    def __enter__(self) -> Curves:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is None:
            return
        if kind is None:
            # DVC removes a stage's curves before it runs the stage, even if another process trains
            # the same preset at that time. The stage then waits for that process.
            self._start()
        # `end` removes a file that all runs of a checkout share: when runs end together, another
        # run may have removed the file. After an error of the training, that error is the cause.
        ignored = [FileNotFoundError] if error is None else [OSError, StorageError]
        with suppress(*ignored), storage_errors(self._folder):
            self._live.end()
        # dvclive's summary is no output of the stage, and the report depends on this folder.
        (self._folder / "metrics.json").unlink(missing_ok=True)

    def _start(self) -> None:
        """Write the epochs so far. `Live` removes all earlier curves."""
        try:
            with storage_errors(self._folder):
                self._live = Live(str(self._folder), dvcyaml=False, save_dvc_exp=False)
        except sqlite3.Error as error:  # in DVC's cache of file hashes
            raise StorageError(
                f"{self._folder}: DVC cannot be started: {error}. Free some space, or remove the "
                "folder that 'dvc doctor' calls Repo.site_cache_dir"
            ) from None
        for row in self._history.rows:
            self.add(row)

    def add(self, row: dict[str, float]) -> None:
        """Write the values of the next epoch."""
        if self._live is None:
            return
        try:
            with storage_errors(self._folder):
                for name, value in row.items():
                    self._live.log_metric(name, value)
                self._live.next_step()
        except StorageError:
            _drop_unfinished_lines(self._folder)
            raise


def _drop_unfinished_lines(folder: Path) -> None:
    """Make files readable whose last line was cut off by a full disk."""
    for path in folder.rglob("*.tsv"):
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
