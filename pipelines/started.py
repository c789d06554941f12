"""Processes that outlive the command that started them, and are found again by it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from manymatch.system import files
from pipelines import guard

_SECONDS_TO_END = guard.GRACE + 20.0
"""Between one signal and the next: a stage is interrupted first, and then its run reports."""


@dataclass(frozen=True)
class Started:
    """The processes written down in `folder`, one file each, with their logs beside them.

    A process is told by its number and the time of its start: numbers are used again.
    """

    folder: Path

    def start(self, name: str, command: list[str], environment: Mapping[str, str]) -> None:
        """Start `python -m COMMAND` in the background; its output goes to `NAME.log`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        begun = psutil.Process(process.pid).create_time()
        files.write_json(self._note(name), {"pid": process.pid, "begun": begun})

    def find(self, name: str) -> psutil.Process | None:
        """The process, if it still runs."""
        if not self._note(name).is_file():
            return None
        note = json.loads(self._note(name).read_text())
        try:
            process = psutil.Process(note["pid"])
            same = process.create_time() == note["begun"]
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None

    def end(self, name: str) -> bool:
        """End the process and all that it started; whether it still ran.

        What it started has time to end by itself: the run of a worker that ends tells the server.
        """
        if process := self.find(name):
            left = [*process.children(recursive=True), process]
            process.terminate()
            for send in (psutil.Process.terminate, psutil.Process.kill):
                _, left = psutil.wait_procs(left, timeout=_SECONDS_TO_END)
                for each in left:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        send(each)
            psutil.wait_procs(left, timeout=_SECONDS_TO_END)
        self._note(name).unlink(missing_ok=True)
        return process is not None

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def last_line(self, name: str) -> str:
        """The last line of the process's output."""
        return self.log(name).read_text(errors="replace").rstrip().rpartition("\n")[2]

    def _note(self, name: str) -> Path:
        return self.folder / f"{name}.json"
