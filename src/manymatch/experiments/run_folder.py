"""The folder of one run: what an interrupted run needs to continue, and what a finished run leaves.

`models/.experiments/KIND/KEY/` holds `result.json` of a finished run and, while the run is not
finished, whatever its kind of experiment writes there (checkpoints, a model). `log.txt` holds the
messages of the run. KEY is the hash of everything that the run depends on except the code, so
that two experiments share a run that they have in common.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manymatch import __version__
from manymatch.util import files
from manymatch.util.errors import DataError
from manymatch.util.json_file import read_object
from manymatch.util.locks import locked

Numbers = dict[str, Any]
"""What a run measured, as JSON values."""


@dataclass(frozen=True)
class Run:
    """One run: settings, seed, the hash of the code, and the folder of the run."""

    label: str
    settings: Any
    seed: int
    code: str
    folder: Path

    @property
    def model(self) -> Path:
        """The folder of the trained model, if the run trains one and keeps it."""
        return self.folder / "model"

    def numbers(self, accept_stale: bool = False, needs_model: bool = False) -> Numbers | None:
        """The numbers of the finished run; None if the run is not finished, if other code finished
        the run and `accept_stale` is false, or if `needs_model` and the run has no model."""
        try:
            result = read_object(self.folder / "result.json")
            numbers: Numbers = result["numbers"]
            current = accept_stale or result["code"] == self.code
            complete = not needs_model or self.model.exists()
        except (DataError, KeyError):
            return None
        return numbers if current and complete else None

    def once(
        self,
        work: Callable[[], Numbers],
        kept: Sequence[str] = (),
        accept_stale: bool = False,
        needs_model: bool = False,
    ) -> Numbers:
        """The numbers of the finished run, or else those of `work`, whose messages go to the log.

        Another process that does the same run is waited for. What other code left in the folder
        is removed before the work. The files and folders called `kept` stay after the work.
        `needs_model`: see `numbers`.
        """
        with locked(self.folder / "lock", self.folder):
            numbers = self.numbers(accept_stale, needs_model)
            if numbers is None:
                mark = self.folder / "code"
                if not mark.is_file() or mark.read_text(encoding="utf-8") != self.code:
                    self.tidy()
                    files.write_text(mark, self.code)
                path = self.folder / "log.txt"
                with path.open("w", encoding="utf-8") as log, contextlib.redirect_stderr(log):
                    numbers = work()
                self.finish(numbers)
            self.tidy("result.json", "log.txt", *kept)
        return numbers

    def finish(self, numbers: Numbers) -> None:
        files.write_json(self.folder / "result.json", {"code": self.code, "numbers": numbers})

    def tidy(self, *names: str) -> None:
        """Remove everything but the lock and the files or folders called `names`."""
        for path in self.folder.iterdir():
            if path.name not in {"lock", *names}:
                files.remove(path)


def key_of(**values: Any) -> str:
    """Equal values have equal keys; the values must be JSON values."""
    text = json.dumps({**values, "version": __version__}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
