"""What a killed `dvc` leaves half written, and that every later `dvc` works again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from filelock import FileLock

from manymatch.cli import killed_dvc
from manymatch.cli.killed_dvc import mend

PIPELINE = """
stages:
  one: {cmd: cat setting > one, deps: [setting], outs: [one]}
  two: {cmd: cat one > two, deps: [one], outs: [two]}
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True)


def repro() -> str | None:
    """What `dvc repro` says; None if it ends with an error."""
    done = run("dvc", "repro")
    return done.stdout if done.returncode == 0 else None


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of git and DVC, whose two stages have run."""
    monkeypatch.chdir(tmp_path)
    Path("dvc.yaml").write_text(PIPELINE)
    Path("setting").write_text("quick")
    for command in ("git init -q", "dvc init -q", "dvc repro -q"):
        assert run(*command.split()).returncode == 0
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("table", ["", '{"write": {"a', "{}"])
def test_a_table_that_cannot_be_read_is_removed(project: Path, table: str) -> None:
    written = project / ".dvc" / "tmp" / "rwlock"
    written.write_text(table)
    assert (repro() is not None) == (table == "{}")
    mend(project)
    assert written.exists() == (table == "{}")
    assert repro() is not None


@pytest.mark.slow
@pytest.mark.parametrize("committed", [True, False])
def test_a_cut_off_lock_file_loses_no_result(
    project: Path, committed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = project / "dvc.lock"
    whole = lock.read_bytes()
    if committed:
        author = ("-c", "user.name=a", "-c", "user.email=a@localhost")
        assert run("git", "add", "dvc.lock").returncode == 0
        assert run("git", *author, "commit", "-qm", "Results").returncode == 0
    mend(project)
    assert lock.read_bytes() == whole and capsys.readouterr().err == ""
    for kept in (0, whole.rindex(b"path") + 2):
        lock.write_bytes(whole[:kept])
        assert repro() is None
        mend(project)
        assert lock.exists() == committed and "half of it" in capsys.readouterr().err
        assert (project / ".dvc" / "tmp" / "dvc.lock.damaged").read_bytes() == whole[:kept]
        again = repro()
        assert again is not None and "Running stage" not in again
        assert lock.read_bytes() == whole


def test_a_conflict_of_a_merge_is_left_to_the_user(tmp_path: Path) -> None:
    lock = tmp_path / "dvc.lock"
    conflict = "<<<<<<< HEAD\nschema: '2.0'\n=======\nschema: '1.0'\n>>>>>>> other\n"
    lock.write_text(conflict)
    mend(tmp_path)
    assert lock.read_text() == conflict


def test_what_a_process_of_dvc_writes_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killed_dvc, "_SECONDS", 0.1)
    lock, own = tmp_path / "dvc.lock", tmp_path / ".dvc" / "tmp"
    own.mkdir(parents=True)
    lock.write_text("schema:")
    (own / "rwlock").write_text("{")
    with FileLock(own / "lock"), FileLock(own / "rwlock.lock"):
        mend(tmp_path)
        assert lock.read_text() == "schema:" and (own / "rwlock").read_text() == "{"
    mend(tmp_path)
    assert not lock.exists() and not (own / "rwlock").exists()
