"""Each fault of the database of a search is one line with its path, and nothing is lost."""

import sqlite3
from functools import partial
from pathlib import Path

import pytest
from full_disk import error_on_full_disk

from manymatch.util.errors import StorageError

pytest.importorskip("optuna")

from manymatch.experiments.tuning.search import database_errors, open_study
from manymatch.experiments.tuning.space import Pruning

OPEN = partial(open_study, key="key", pruning=Pruning())


def other_version(path):
    OPEN(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'v99.0.0'")


def damaged(path):
    OPEN(path)
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"x" * (len(content) - 100))


@pytest.mark.parametrize("make", [other_version, damaged, Path.mkdir])
def test_a_fault_at_the_start_is_one_line(tmp_path, make):
    path = tmp_path / "search.db"
    make(path)
    with pytest.raises(StorageError) as error:
        OPEN(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_a_full_disk_is_one_line_and_the_trials_stay(tmp_path):
    path = tmp_path / "search.db"
    assert error_on_full_disk(partial(OPEN, path), 5_000).startswith(f"StorageError: {path}: ")
    path.unlink(missing_ok=True)
    OPEN(path).tell(OPEN(path).ask(), 1.0)

    def fill():
        study = OPEN(path)
        with database_errors(path):
            for number in range(1000):
                study.ask().set_user_attr("settings", [number] * 100)

    fault = error_on_full_disk(fill, path.stat().st_size + 8_000)
    assert fault.startswith(f"StorageError: {path}: ") and "Free some space" in fault
    assert OPEN(path).trials[0].value == 1.0
