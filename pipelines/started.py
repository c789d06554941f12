"""Processes that outlive the command that started them; a note of each lets `stop` find it."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from manymatch.util import files
from manymatch.util.errors import DataError
from manymatch.util.json_file import read_object
from manymatch.util.parent import GRACE

_SECONDS_TO_END = GRACE + 20.0
"""Time between two signals: a stage is interrupted first, and then its run reports."""


@dataclass(frozen=True)
class Started:
    """The processes with a note in `folder`, and their logs.

    A note holds a process id and a start time, because the system reuses process ids.
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
        """The process if it still runs, else None.

        Raises:
            DataError: the note is damaged.
        """
        if not (path := self._note(name)).is_file():
            return None
        try:
            note = read_object(path)
            process = psutil.Process(note["pid"])
            same = process.create_time() == note["begun"]
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None
        except (DataError, KeyError, TypeError, ValueError, OverflowError):
            raise DataError(
                f"{path}: no note of a process. End the process by hand if it still runs (ps -ef), "
                "then remove the file"
            ) from None

    def end(self, name: str) -> bool:
        """End the process and its children; returns whether the process still ran.

        The children get time to end by themselves: a worker's run tells the server how it ended.
        """
        if process := self.find(name):
            left = [*process.children(recursive=True), process]
            process.terminate()
            for send in (psutil.Process.terminate, psutil.Process.kill):
                _, left = psutil.wait_procs(left, timeout=_SECONDS_TO_END)
                for running in left:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        send(running)
            psutil.wait_procs(left, timeout=_SECONDS_TO_END)
        self._note(name).unlink(missing_ok=True)
        return process is not None

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _note(self, name: str) -> Path:
        return self.folder / f"{name}.json"
