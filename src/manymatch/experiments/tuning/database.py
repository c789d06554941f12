"""The database of a search. Its faults are errors of one line."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import optuna
from sqlalchemy.exc import SQLAlchemyError

from manymatch.experiments.tuning.space import Pruning
from manymatch.util.errors import StorageError, first_line
from manymatch.util.regular_file import open_regular

_FAULTS = SQLAlchemyError, sqlite3.Error, optuna.exceptions.StorageInternalError


@contextlib.contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Turn what Optuna, SQLAlchemy and SQLite raise about the database `path` into a `StorageError`
    of one line. The block must use no other database."""
    try:
        yield
    except _FAULTS as error:
        raise _fault(path, error) from error


def open_study(path: Path, key: str, pruning: Pruning) -> optuna.Study:
    """The study `key` of the database `path`; both are created if they are missing.

    Raises:
        DataError: `path` is no regular file.
        StorageError: the database is damaged, or cannot be read or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        open_regular(path).close()  # SQLite would wait at a pipe
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        storage = optuna.storages.RDBStorage(
            f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 60}}
        )
        return optuna.create_study(
            storage=storage,
            pruner=optuna.pruners.MedianPruner(pruning.after_trials, pruning.after_full_epochs),
            study_name=key,
            direction="maximize",
            load_if_exists=True,
        )
    # Optuna has no error of its own for tables of another version, or with values of another kind.
    except (*_FAULTS, RuntimeError, ValueError, LookupError, TypeError) as error:
        raise _fault(path, error) from error


def _fault(path: Path, error: Exception) -> StorageError:
    reason = first_line(getattr(error, "orig", None) or error.__cause__ or error)
    return StorageError(
        f"{path}: the trials cannot be read or written: {reason}. Free some space, or correct the "
        "permissions. Or move the file away: the search then begins anew, with --extend from its "
        "file of results"
    )
