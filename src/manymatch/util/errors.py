"""Errors that a user can cause or correct. The command line prints one line and exits with 1.

Any other exception is a defect of ManyMatch and keeps its traceback.
"""

import contextlib
import difflib
from collections.abc import Iterable, Iterator

from pydantic import ValidationError

_LONGEST = 1_000
_END = 300


def one_line(text: str) -> str:
    """`text` as one line of at most about 1,000 characters, which can be printed safely.

    The middle of a longer text is left out. Characters that cannot be printed are shown as escapes:
    texts from files and servers could otherwise operate the terminal, hide a part of the line or
    imitate a message of the program.
    """
    return _cut(printable(_cut(text)))


def printable(text: str) -> str:
    """`text` with escapes for the characters that cannot be printed."""
    if text.isprintable():
        return text
    escaped = (
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )
    return "".join(escaped)


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - _END]} ... {text[-_END:]}"


class ManyMatchError(Exception):
    """One line: what is wrong (file, line, key), and how to correct it."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class ConfigError(ManyMatchError):
    """A setting, preset or name does not exist or does not fit."""


class SourceError(ManyMatchError):
    """A download, archive or folder is missing, damaged or unsafe."""


class DataError(ManyMatchError):
    """The content of a data file cannot be used: captions, images, features, graphs."""


class DivergenceError(DataError):
    """A loss, embedding or score is not finite: training diverged, or the features hold NaN."""


class DeviceMemoryError(ManyMatchError):
    """A batch needs more memory than the processor or the GPU has."""


class StorageError(ManyMatchError):
    """The disk is full, or a file cannot be read or written."""


class CheckpointError(ManyMatchError):
    """A model or checkpoint does not fit its settings or its network."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown `name`: the nearest known name, and all names."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    return f"{hint} (known: {', '.join(names) or 'none'})"


def repeated(names: Iterable[str]) -> str | None:
    """The first name that occurs twice, or None. Files from elsewhere may hold a million names."""
    seen = set[str]()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def first_line(error: BaseException) -> str:
    """The first line of a library's error message, without NumPy's advice to unpickle a file."""
    line = str(error).strip().partition("\n")[0].partition(" If you trust ")[0]
    return line or type(error).__name__


def first_fault(error: ValidationError) -> str:
    """The first fault that pydantic found, with its key: "rows.3.width: Field required"."""
    fault = error.errors(include_url=False)[0]
    key = ".".join(map(str, fault["loc"]))
    message = fault["msg"].partition("\n")[0].removeprefix("Value error, ")
    return f"{key}: {message}" if key else message


@contextlib.contextmanager
def content_of(path: object, what: str, remedy: str) -> Iterator[None]:
    """Content of the file at `path` that pydantic refuses in the block is a `DataError`: the file
    is not `what`, such as "an index", and the `remedy` is a sentence that says what to do."""
    try:
        yield
    except ValidationError as error:
        raise DataError(f"{path}: not {what} ({first_fault(error)}). {remedy}") from None


def told(error: BaseException) -> str:
    """The whole message of a library's error on one line, or its class if there is no message."""
    return " ".join(str(error).split()) or type(error).__name__


def memory_fault(error: BaseException) -> str:
    """What `error` says about too little memory, or about no memory for a library or a thread;
    empty for errors of other kinds.

    PyTorch has no class for a processor without memory.
    """
    texts = (
        "can't allocate memory",
        "cannot allocate memory",
        "can't start new thread",
        "failed to map segment",
        "out of memory",
    )
    if not isinstance(error, MemoryError) and not any(text in str(error) for text in texts):
        return ""
    return first_line(error).rpartition("DefaultCPUAllocator: ")[2]
