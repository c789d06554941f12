"""Training curves: one point of each value for every epoch, written by the preset's logger.

dvclive belongs to DVC (the extra `pipeline`), whose plots and the report read its files. Without
dvclive a training writes no curves and is otherwise the same. Each other logger is an extra of its
own, and must be installed if the preset names it.
"""

import importlib.util
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from manymatch.config.preset import Logger
from manymatch.training.checkpoints import History
from manymatch.training.helpers import first_process
from manymatch.util.errors import ConfigError, StorageError
from manymatch.util.files import remove, storage_errors
from manymatch.util.packages import extra
from manymatch.util.progress import say

try:
    from dvclive import Live
except ImportError:
    Live = None  # type: ignore[assignment, misc]

_Library = tuple[Callable[[dict[str, float], int], object], Callable[[], object]]
"""A function that writes the values of an epoch (0-based), and one that ends."""
EXTRAS = ("tensorboard", "wandb", "mlflow")
"""The loggers whose package is an extra. Logger, package and extra have one name."""


class Curves:
    """The curves of one run in `folder`.

    A resumed run writes them anew from its `history`, so that no point is repeated or missing. Only
    the process of rank 0 writes. A missing package of the `logger` is a `ConfigError`.
    """

    def __init__(self, folder: Path, history: History, logger: Logger = "dvclive") -> None:
        self._folder, self._history, self._logger = folder, history, logger
        self._open: _Library | None = None
        if not first_process():
            return
        if logger in EXTRAS and importlib.util.find_spec(logger) is None:
            raise ConfigError(
                f"training.logger: the package {logger} is missing. "
                f"Run pip install {extra(logger)}."
            )
        if logger == "dvclive" and Live is None:
            say(f"no training curves: dvclive is missing. Run pip install {extra('pipeline')}.")
            return
        self._start()

    def __enter__(self) -> "Curves":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._open is None:
            return
        if error is None and self._logger == "dvclive":
            # DVC removes a stage's curves before it runs the stage, even if another process trains
            # the same preset at that time. The stage then waits for that process.
            self._start()
        # dvclive's `end` removes a file that all runs of a checkout share: when runs end together,
        # another run may have removed the file. After an error of the training, that error is the
        # cause.
        ignored = [FileNotFoundError] if error is None else [OSError, StorageError]
        with suppress(*ignored), storage_errors(self._folder):
            self._open[1]()
        # dvclive's summary is no output of the stage, and the report depends on this folder.
        (self._folder / "metrics.json").unlink(missing_ok=True)

    def _start(self) -> None:
        """Write the epochs so far, without all earlier curves."""
        try:
            with storage_errors(self._folder):
                self._open = _opened(self._logger, self._folder)
        except sqlite3.Error as error:  # in DVC's cache of file hashes
            raise StorageError(
                f"{self._folder}: DVC cannot be started: {error}. Free some space, or remove the "
                "folder that 'dvc doctor' calls Repo.site_cache_dir"
            ) from None
        for epoch in range(len(self._history.rows)):
            self._write(epoch)

    def add(self) -> None:
        """Write the values of the last epoch of the history."""
        self._write(len(self._history.rows) - 1)

    def _write(self, epoch: int) -> None:
        if self._open is None:
            return
        try:
            with storage_errors(self._folder):
                self._open[0](self._history.rows[epoch], epoch)
        except StorageError:
            for path in self._folder.rglob("*.tsv"):  # the disk may have cut off the last line
                os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
            raise


def _opened(logger: Logger, folder: Path) -> _Library:
    """The library of `logger` with new curves.

    dvclive writes below `folder`. The others write to `folder/plots/metrics`, the output of the
    stage in DVC, if they write files of their own. A server that `wandb` or `mlflow` is set up for
    gets the curves as a new run, after each start of the training.
    """
    if logger == "dvclive":
        live = Live(str(folder), dvcyaml=False, save_dvc_exp=False)

        def log_live(row: dict[str, float], epoch: int) -> None:
            for name, value in row.items():
                live.log_metric(name, value)
            live.next_step()

        return log_live, live.end
    output, title = folder / "plots" / "metrics", "/".join(folder.parts[-2:])
    remove(output)
    output.mkdir(parents=True)
    if logger == "wandb":
        import wandb

        run = wandb.init(project="manymatch", name=title, dir=output)
        return run.log, run.finish
    if logger == "mlflow":
        import mlflow

        if not mlflow.is_tracking_uri_set():
            mlflow.set_tracking_uri(f"sqlite:///{output.resolve()}/mlflow.db")
        mlflow.set_experiment("manymatch")
        mlflow.start_run(run_name=title)
        return mlflow.log_metrics, mlflow.end_run
    from lightning_fabric.loggers import CSVLogger, TensorBoardLogger
    from lightning_fabric.utilities.rank_zero import rank_zero_only

    process: Any = rank_zero_only
    process.rank = 0  # a cluster's variables may say another number
    if logger == "csv":
        table: Any = CSVLogger(output, "", "", flush_logs_every_n_steps=1)
        return table.log_metrics, table.save
    board: Any = TensorBoardLogger(output, "", "")
    return board.log_metrics, lambda: board.finalize("success")
