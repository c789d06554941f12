"""A lock file keeps out other threads and processes, and a process that dies releases the lock."""

import errno
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock
from full_disk import error_on_full_disk

from manymatch.util import files, locks
from manymatch.util.errors import StorageError
from manymatch.util.locks import lock_path, locked

HOLD = """
import sys
from pathlib import Path
from manymatch.util.locks import locked
with locked(Path(sys.argv[1]), Path("output")):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(path):
    """A process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process


@pytest.mark.parametrize("end", ["finish", "kill"])
def test_a_lock_is_waited_for(tmp_path, capsys, end):
    path = tmp_path / "new" / "x.lock"
    answers = []

    def wait():
        with locked(path, Path("output")):
            answers.append("held")

    with holder(path) as process:
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.5)
        assert answers == []
        if end == "kill":
            process.kill()
        else:
            process.communicate()
    thread.join(10)
    assert answers == ["held"]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and str(process.pid) in lines[0] and str(path) in lines[0]
    assert list(path.parent.glob("*")) == []  # the process that made the folder may remove it last


def test_a_command_with_a_name_that_is_not_utf8_holds_a_lock(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["manymatch", "init", "caf\udce9"])
    with locked(tmp_path / "a.lock", tmp_path / "a"):
        assert "init 'caf\\udce9'" in (tmp_path / "a.lock").read_text()


def test_threads_hold_one_lock_in_turn(tmp_path):
    inside, most = [0], [0]

    def enter():
        for _ in range(3):
            with locked(tmp_path / "x.lock", Path("output")):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.01)
                inside[0] -= 1

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(enter) for _ in range(3)]:
            done.result()
    assert most == [1] and list(tmp_path.iterdir()) == []
    path = tmp_path / "new" / "far" / "x.lock"
    with pytest.raises(KeyError), locked(path, path):
        raise KeyError
    assert list(tmp_path.iterdir()) == []  # not even the folders
    with locked(path, path):
        (tmp_path / "new" / "result").touch()
    assert [one.name for one in tmp_path.rglob("*")] == ["new", "result"]


def test_a_lock_that_cannot_be_made_is_one_line_and_leaves_no_file_and_no_folder(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "not mounted" / "here")
    before = sorted(tmp_path.iterdir())
    for name, words in (
        ("file/output", str(tmp_path / "file")),
        ("link/output", str(tmp_path / "link")),
        (f"a/b/{'c' * 250}", "too long"),
    ):
        with pytest.raises(StorageError, match=words) as error:
            locked(lock_path(tmp_path / name), Path("output")).__enter__()
        assert "\n" not in str(error.value) and sorted(tmp_path.iterdir()) == before
    path = tmp_path / "a" / "x.lock"
    fault = error_on_full_disk(lambda: locked(path, path).__enter__(), 0)  # no room for the note
    assert fault.startswith(f"StorageError: {path}: no space left")
    assert sorted(tmp_path.iterdir()) == before


def test_a_path_without_a_name_has_no_lock_and_no_temporary_file():
    for path in ("/", ".", "a\0b", "\ud800", "a\udcff"):
        for named in (lock_path, files.partial_path):
            with pytest.raises(StorageError, match="Add a name"):
                named(Path(path))


def test_a_file_that_cannot_be_created_in_its_folder_is_one_line(monkeypatch):
    monkeypatch.setattr(locks, "_PATIENCE", 0.3)
    with ThreadPoolExecutor(1) as pool, pytest.raises(StorageError, match="cannot be created"):
        pool.submit(locked(Path("/proc/x"), Path("output")).__enter__).result(20)


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch, capsys):
    def refuse(*_, **__):
        raise OSError(errno.ENOSYS, "no locks")

    monkeypatch.setattr(FileLock, "acquire", refuse)
    with locked(tmp_path / "x.lock", Path("output")):
        pass
    assert "no locks" in capsys.readouterr().err


def test_a_folder_that_is_removed_meanwhile_is_made_again(tmp_path, monkeypatch):
    path = tmp_path / "new" / "x.lock"
    acquire, calls = FileLock.acquire, []

    def late(self, **options):
        calls.append(options)
        if len(calls) == 1:
            path.parent.rmdir()
            raise FileNotFoundError
        return acquire(self, **options)

    monkeypatch.setattr(FileLock, "acquire", late)
    with locked(path, path):
        assert len(calls) == 2
