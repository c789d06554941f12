"""Commands in groups of their own: every line arrives, nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pipelines import process

WORKS = "from pipelines import process\nprocess.run(['sh', '-c', 'echo on; exec sleep 300'], print)"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\n\r\ntwo", ["one", "two"]),
        (b"10%\r20%\r30%\rdone\n", ["10%", "done"]),
        (b"caf\xe9\n", ["caf�"]),
    ],
)
def test_lines(written: bytes, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "written").write_bytes(written)
    with (tmp_path / "written").open("rb") as reading:
        assert list(process.lines(reading.fileno())) == expected


def test_a_command_is_heard_and_its_exit_code_returned() -> None:
    lines: list[str] = []
    code = process.run(
        ["sh", "-c", "echo $THING; echo aside >&2; exit 3"], lines.append, {"THING": "a"}
    )
    assert (code, lines) == (3, ["a", "aside"])
    assert process.run(["sh", "-c", "kill -9 $$"], lines.append) == 128 + signal.SIGKILL


def test_the_environment_of_this_process_comes_first(tmp_path: Path) -> None:
    lines: list[str] = []
    process.run(["sh", "-c", "command -v python; pwd"], lines.append, folder=tmp_path)
    assert lines == [str(Path(sys.executable).with_name("python")), str(tmp_path)]


def test_what_a_command_leaves_running_ends_with_it() -> None:
    before = _sleepers()
    process.run(["sh", "-c", "sleep 300 & echo on"], lambda line: None)
    assert _sleepers() <= before


def test_an_exception_interrupts_the_command_and_hears_its_last_words() -> None:
    lines: list[str] = []

    def stop(line: str) -> None:
        lines.append(line)
        if line == "on":
            time.sleep(0.5)  # While a shell starts a command, it misses signals.
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        process.run(["sh", "-c", "trap 'echo off; exit' INT; echo on; sleep 300"], stop)
    assert lines == ["on", "off"] and time.monotonic() - began < 10


def test_what_nobody_wants_any_more_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_SECONDS_BETWEEN_LOOKS", 0.5)
    lines: list[str] = []
    code = process.run(
        ["sh", "-c", "trap 'echo off; exit 3' INT; echo on; sleep 300"],
        lines.append,
        wanted=lambda: not lines,
    )
    assert (code, lines) == (3, ["on", "off"])


def test_the_command_ends_with_a_starter_that_is_killed(root: Path) -> None:
    before = _sleepers()
    starter = subprocess.Popen(
        [sys.executable, "-c", WORKS],
        cwd=root,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None and starter.stdout.readline() == "on\n"
    while not (started := _sleepers() - before):
        time.sleep(0.1)
    starter.kill()
    starter.wait()
    starter.stdout.close()
    deadline = time.monotonic() + 10
    while (left := _sleepers() & started) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


def _sleepers() -> set[int]:
    """Processes `sleep 300`, which only these tests start."""
    result = psutil.process_iter(["cmdline", "status"])
    return {
        item.pid
        for item in result
        if item.info["cmdline"] == ["sleep", "300"] and item.info["status"] != psutil.STATUS_ZOMBIE
    }
