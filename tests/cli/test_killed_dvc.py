"""What a killed `dvc` leaves half written, and that every later `dvc` works again."""

import json
import os
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


def run(*words):
    return subprocess.run(words, capture_output=True, text=True)


def repro():
    """What `dvc repro` says; None if it ends with an error."""
    done = run("dvc", "repro")
    return done.stdout if done.returncode == 0 else None


@pytest.mark.slow
@pytest.mark.usefixtures("warm_path")
def test_what_a_kill_cut_off_loses_no_result(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("dvc.yaml").write_text(PIPELINE)
    Path("setting").write_text("quick")
    for command in ("git init -q", "dvc init -q", "dvc repro -q"):
        assert run(*command.split()).returncode == 0
    lock, table = Path("dvc.lock"), Path(".dvc", "tmp", "rwlock")
    whole = lock.read_bytes()
    table.write_text("{}")
    mend(tmp_path)
    assert lock.read_bytes() == whole and table.exists() and capsys.readouterr().err == ""
    for committed, kept in ((False, whole.rindex(b"path") + 2), (True, 0)):
        if committed:
            author = ("-c", "user.name=a", "-c", "user.email=a@localhost")
            assert run("git", "add", "dvc.lock").returncode == 0
            assert run("git", *author, "commit", "-qm", "Results").returncode == 0
        lock.write_bytes(whole[:kept])
        table.write_text('{"write": {"a'[:kept])
        assert repro() is None
        mend(tmp_path)
        assert lock.exists() == committed and not table.exists()
        assert capsys.readouterr().err.count("half of it") == 2
        assert Path(".dvc", "tmp", "dvc.lock.damaged").read_bytes() == whole[:kept]
        again = repro()
        assert again is not None and "Running stage" not in again
        assert lock.read_bytes() == whole


def test_users_of_files_that_have_ended_leave_the_table(tmp_path, capsys):
    with subprocess.Popen(["true"]) as process:
        ended = {"pid": process.pid, "cmd": "dvc repro"}
    alive = {"pid": os.getpid(), "cmd": "dvc repro"}
    table = tmp_path / ".dvc" / "tmp" / "rwlock"
    table.parent.mkdir(parents=True)
    users = {"write": {"a": ended, "b": alive}, "read": {"c": [ended], "d": [ended, alive]}}
    table.write_text(json.dumps(users))
    mend(tmp_path)
    assert json.loads(table.read_text()) == {"write": {"b": alive}, "read": {"d": [alive]}}
    assert capsys.readouterr().err == ""
    for content in ("[]", json.dumps({"write": {"a": {"pid": 10**30}}})):
        table.write_text(content)
        mend(tmp_path)
        assert not table.exists()


def test_a_conflict_of_a_merge_and_what_dvc_writes_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(killed_dvc, "_SECONDS", 0.1)
    lock, own = tmp_path / "dvc.lock", tmp_path / ".dvc" / "tmp"
    own.mkdir(parents=True)
    conflict = "<<<<<<< HEAD\nschema: '2.0'\n=======\nschema: '1.0'\n>>>>>>> other\n"
    lock.write_text(conflict)
    mend(tmp_path)
    assert lock.read_text() == conflict
    lock.write_text("schema:")
    (own / "rwlock").write_text("{")
    with FileLock(own / "lock"), FileLock(own / "rwlock.lock"):
        mend(tmp_path)
        assert lock.read_text() == "schema:" and (own / "rwlock").read_text() == "{"
    mend(tmp_path)
    assert not lock.exists() and not (own / "rwlock").exists()
