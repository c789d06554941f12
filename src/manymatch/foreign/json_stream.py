"""Lists in JSON files that are too large to be read at once, element by element.

COCO's instances and Karpathy's JSON are hundreds of megabytes, and several times that as Python
objects. All these files are one object with a few lists in it.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from manymatch.system.errors import DataError

_CHUNK = 2**18
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"
_TAIL = 2
"""Characters that the longest unfinished end of a number has: "e+"."""


def elements(path: Path, lists: Collection[str]) -> Iterator[tuple[str, int, Any]]:
    """(name, number, element) of the elements of the `lists` at the top of a UTF-8 JSON file.

    They come in the file's order; one element at a time is in memory. Raises `DataError` with the
    line where the file is not JSON, and for a list that is not there.
    """
    with path.open("rb") as stream:
        cursor = _Cursor(stream, path)
        found = set()
        for name in _keys(cursor, path):
            if name in lists and cursor.peek() == "[":
                found.add(name)
                for number, element in enumerate(_list(cursor)):
                    yield name, number, element
            else:
                _skip(cursor)
    missing = sorted(set(lists) - found)
    if missing:
        raise DataError(f"{path}: expected a list '{missing[0]}' at its top level")


def _keys(cursor: _Cursor, path: Path) -> Iterator[str]:
    """The keys of the outermost object; who gets one takes its value before asking for the next."""
    if cursor.peek() != "{":
        raise DataError(f"{path}: expected a JSON object with lists in it")
    for _ in _items(cursor, "{", "}"):
        key = cursor.value()
        if not isinstance(key, str):
            raise cursor.fault("expected a key in quotes")
        cursor.take(":")
        yield key
    if cursor.peek():
        raise cursor.fault("there is more after its end")


def _list(cursor: _Cursor) -> Iterator[Any]:
    for _ in _items(cursor, "[", "]"):
        yield cursor.value()


def _skip(cursor: _Cursor) -> None:
    if cursor.peek() == "[":
        for _ in _list(cursor):
            pass
    else:
        cursor.value()


def _items(cursor: _Cursor, opening: str, closing: str) -> Iterator[None]:
    """Once for each item between the brackets, the cursor before it."""
    cursor.take(opening)
    if cursor.peek() != closing:
        yield
        while cursor.peek() == ",":
            cursor.take(",")
            yield
    cursor.take(closing)


class _Cursor:
    """A place in a JSON text of which a window is in memory."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream, self._path = stream, path
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._window, self._at = "", 0
        self._lines, self._bytes = 0, 0
        self._ended = False

    def peek(self) -> str:
        """The next character that is no space; "" at the end."""
        while True:
            while self._at < len(self._window):
                if self._window[self._at] not in _SPACE:
                    return self._window[self._at]
                self._at += 1
            if not self._more():
                return ""

    def take(self, sign: str) -> None:
        if self.peek() != sign:
            raise self.fault(f"expected '{sign}'")
        self._at += 1

    def value(self) -> Any:
        """The value that begins here; the cursor stands after it then."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._window, self._at)
            except json.JSONDecodeError as error:
                if not self._more():
                    raise self._fault_at(error.lineno - 1, error.msg) from None
            except (RecursionError, ValueError) as error:
                raise self.fault(str(error)) from None
            else:
                # A number at the window's end may go on behind it: "-2.5e" reads as -2.5 and "e".
                cut = isinstance(value, int | float) and end + _TAIL >= len(self._window)
                if not cut or not self._more():
                    self._at = end
                    return value

    def fault(self, words: str) -> DataError:
        return self._fault_at(self._window.count("\n", 0, self._at), words)

    def _fault_at(self, line: int, words: str) -> DataError:
        return DataError(f"{self._path}:{self._lines + line + 1}: not valid JSON: {words}")

    def _more(self) -> bool:
        """Take at least as much again into the window; False at the file's end."""
        if self._ended:
            return False
        rest = self._window[self._at :]
        self._lines += self._window.count("\n", 0, self._at)
        block = self._stream.read(max(_CHUNK, len(rest)))
        self._ended = not block
        self._window, self._at = rest + self._decoded(block), 0
        return True

    def _decoded(self, block: bytes) -> str:
        waiting = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            place = self._bytes - waiting + error.start
            raise DataError(f"{self._path}: byte {place} is not UTF-8") from None
        self._bytes += len(block)
        return text
