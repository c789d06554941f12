"""What `make serve` starts is found again, and nothing else is taken for it."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest

from pipelines import started as module
from pipelines.stage import task_of
from pipelines.started import Started

WAITS = "import subprocess, time; subprocess.Popen(['sleep', '60']); time.sleep(60)"


def start(folder: Path, program: str = WAITS) -> tuple[Started, psutil.Process]:
    (folder / "waits.py").write_text(program)
    started = Started(folder / "service")
    started.start("one", ["waits"], {"PYTHONPATH": str(folder)})
    process = started.find("one")
    assert process
    return started, process


def test_a_process_ends_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECONDS_TO_END", 0.1)
    started, process = start(tmp_path)
    while not (children := process.children()):
        assert process.is_running()
    assert started.end("one")
    _, alive = psutil.wait_procs([process, *children], timeout=5)
    assert not alive
    assert started.find("one") is None and not started.end("one")


ENDS = """
import pathlib, subprocess, sys, time
late = "import time; time.sleep(0.5); open('late', 'w').close()"
subprocess.Popen([sys.executable, "-c", late])
time.sleep(60)
"""


def test_what_it_started_has_time_to_end_by_itself(tmp_path: Path) -> None:
    started, process = start(tmp_path, ENDS.replace("'late'", repr(str(tmp_path / "late"))))
    while not process.children():
        assert process.is_running()
    assert started.end("one")
    assert (tmp_path / "late").is_file()


def test_another_process_with_the_same_number_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECONDS_TO_END", 0.1)
    started, process = start(tmp_path)
    note = tmp_path / "service" / "one.json"
    mine = note.read_text()
    note.write_text(json.dumps(json.loads(mine) | {"begun": 1.0}))
    assert started.find("one") is None and not started.end("one")
    assert process.is_running()
    note.write_text(mine)
    assert started.end("one")


def test_downloads_are_tried_again_and_training_is_not() -> None:
    delays = task_of("download").retry_delay_seconds
    assert task_of("download").retries == len(delays) == 3 and delays == sorted(set(delays))
    assert task_of("train").retries == 0
