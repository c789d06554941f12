"""What a run needs and this machine lacks: `manymatch check` lists it before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from manymatch.util.errors import ManyMatchError, SourceError

_MB = 10**6


@dataclass(frozen=True)
class Need:
    """A file or folder that is not here.

    `size`: bytes, where known. `fault`: what the user must do; None: the run downloads it.
    """

    what: str
    size: int | None = None
    fault: ManyMatchError | None = None

    def __str__(self) -> str:
        if self.size is None:
            return f"{self.what} (size unknown)"
        size = f"{self.size / _MB:,.0f}" if self.size >= _MB else "less than 1"
        return f"{self.what} ({size} MB)"


def missing_file(key: str, path: str | None, what: str) -> Need | None:
    """The need of the file or folder that the setting `key` names; None if it is here.

    Args:
        path: the setting's value.
        what: what belongs there, and where people get it.
    """
    if path is not None and Path(path).exists():
        return None
    found = "not set" if path is None else f"no such file or folder: {path}"
    return Need(key, fault=SourceError(f"{key}: {found}. Set the key to {what}"))
