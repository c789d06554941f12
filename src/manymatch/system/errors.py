"""The faults a user can cause or mend. The command line prints each as one line and exits with 1.

Anything that is not a `ManyMatchError` is a defect of ours and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ManyMatchError(Exception):
    """What is wrong, where (file, line, key), and what to do, in one line."""


class ConfigError(ManyMatchError):
    """A setting, preset or name that does not exist or does not fit."""


class SourceError(ManyMatchError):
    """A download, archive or folder that is missing, damaged or unsafe."""


class DataError(ManyMatchError):
    """Content of a data file that cannot be used: captions, images, features, graphs."""


class StorageError(ManyMatchError):
    """The disk is full or a file cannot be written."""


class CheckpointError(ManyMatchError):
    """A model or checkpoint that does not fit what it is loaded into."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown `name`: the nearest known one, and all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    return f"{hint} (known: {', '.join(names) or 'none'})"


def first_line(error: BaseException) -> str:
    """What an error of a library says, for the end of a message of one line; NumPy's advice to
    unpickle a file is left out."""
    told = str(error).strip().partition("\n")[0].partition(" If you trust ")[0]
    return told or type(error).__name__
