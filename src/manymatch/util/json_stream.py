"""Lists in JSON files that are too large for memory, read element by element with ijson.

COCO's instances and Karpathy's JSON files have hundreds of megabytes, and take several times as
much as Python objects. Such a file is one object that contains a few lists, or one list.
"""

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import ijson

from manymatch.util.errors import DataError
from manymatch.util.regular_file import open_regular

MAX_DEPTH = 100
"""Lists and objects inside each other. No data set nests more than ten."""
_READ_BYTES = 2**16
_ESCAPE = re.compile(
    rb"\\(?:u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}"
    rb"|(u[Dd][89A-Fa-f][0-9A-Fa-f]{2})|.)",
    re.S,
)
"""An escape of JSON; the group holds half of a pair of surrogates without the other half."""
_LONGEST_ESCAPE = 12
_OPENING, _CLOSING = {"start_map", "start_array"}, {"end_map", "end_array"}
Event = tuple[str, Any]
"""What ijson calls it: "start_array", "map_key", "number", ..., and the value."""
Element = tuple[str, int, Any]
"""The name of the list, the element's number from 0 (-1: the list begins), and the element."""


class MissingList(DataError):
    """A JSON object without the wanted lists."""


def elements(path: Path, lists: Collection[str]) -> Iterator[Element]:
    """(name, number, element) for every element of the `lists` of the object in a UTF-8 file.

    The elements are in the file's order. Only one element is in memory at a time.

    Raises:
        DataError: the file is not JSON (the message names the list and the element), a list is
            missing, or values are nested deeper than `MAX_DEPTH`.
    """
    missing = set(lists)

    def read(events: Iterator[Event]) -> Iterator[Element]:
        if next(events)[0] != "start_map":
            raise DataError(f"{path}: expected a JSON object that contains lists")
        for event, name in events:
            if event == "end_map":
                continue
            opening = next(events)
            if name in lists and opening[0] == "start_array":
                missing.discard(name)
                yield name, -1, None
                for number, element in enumerate(_elements(events, 2)):
                    yield name, number, element
            else:
                _skip(opening, events)

    yield from _read(path, read)
    if missing:
        raise MissingList(f"{path}: expected a list '{min(missing)}' at the top level")


def list_elements(path: Path) -> Iterator[Any]:
    """The elements of a UTF-8 file that is one JSON list; raises the same as `elements`."""

    def read(events: Iterator[Event]) -> Iterator[Element]:
        if next(events)[0] != "start_array":
            raise DataError(f"{path}: expected a JSON list")
        yield "", -1, None
        for number, element in enumerate(_elements(events, 1)):
            yield "", number, element
        next(events, None)  # what follows the list is a fault

    return (element for _, _, element in _read(path, read))


def nested_numbers(path: Path, depth: int) -> Iterator[tuple[tuple[str, ...], float]]:
    """(keys, number) for every number inside `depth` objects, and no list, of a UTF-8 file.

    Raises:
        DataError: the file is not JSON, a key occurs twice in one of the `depth` objects, or values
            are nested deeper than `MAX_DEPTH`.
    """

    def read(events: Iterator[Event]) -> Iterator[Element]:
        known: list[set[str]] = [set() for _ in range(depth)]
        keys: list[str] = []
        lists, count = 0, -1
        for event, value in events:
            if event == "map_key":
                keys[-1] = value
                if len(keys) <= depth:
                    if value in known[len(keys) - 1]:
                        raise _Refused(f"the key {value[:60]!a} occurs twice in one object")
                    known[len(keys) - 1].add(value)
            elif event == "number":
                if len(keys) == depth and not lists:
                    count += 1
                    yield "numbers", count, (tuple(keys), value)
            elif event in _OPENING:
                keys.append("")
                if len(keys) <= depth:
                    known[len(keys) - 1].clear()
                lists += event == "start_array"
                if len(keys) > MAX_DEPTH:
                    raise _Refused(f"more than {MAX_DEPTH} lists and objects inside each other")
            elif event in _CLOSING:
                keys.pop()
                lists -= event == "end_array"

    return (element for _, _, element in _read(path, read))


def begins_with(path: Path, sign: bytes) -> bool:
    """Whether a JSON file begins with a sign: `[` is that of a list, `{` that of an object."""
    with open_regular(path) as stream:
        return stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(sign)


def field(value: Any, key: str, kind: type, where: str) -> Any:
    """`value[key]`, which must have the type `kind`.

    Raises:
        DataError: the key is missing or has another type; the message starts with `where`.
    """
    item = value.get(key) if isinstance(value, dict) else None
    if not isinstance(item, kind) or isinstance(item, bool):
        raise DataError(f"{where}: expected '{key}' of type {kind.__name__}, found {item!r:.60}")
    return item


class _Refused(Exception):
    """Valid JSON that is not read."""


class _WholeCharacters:
    """A stream of JSON that refuses half a pair of surrogates, in whose place ijson gives another
    character."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._left = stream, b""

    def read(self, size: int) -> bytes:
        if not size:  # ijson asks for nothing first
            return b""
        text = self._left + self._stream.read(size)
        while len(text) <= _LONGEST_ESCAPE and (data := self._stream.read(size)):
            text += data
        settled = max(len(text) - _LONGEST_ESCAPE, 0) or len(text)
        for match in _ESCAPE.finditer(text):
            if match.start() >= settled:
                break
            if match[1]:
                half = match[1].decode()
                raise _Refused(
                    f"half a character, \\{half}. Write the whole pair, or remove the half"
                )
            settled = max(settled, match.end())
        self._left = text[settled:]
        return text[:settled]


def _read(path: Path, read: Callable[[Iterator[Event]], Iterator[Element]]) -> Iterator[Element]:
    """The elements that `read` takes from the events of the file. A fault of the file is a
    `DataError` that names the list and the element."""
    where = str(path)
    with open_regular(path) as stream:
        if stream.read(3) != b"\xef\xbb\xbf":  # the byte order mark
            stream.seek(0)
        try:
            whole = _WholeCharacters(stream)
            events = iter(ijson.basic_parse(whole, buf_size=_READ_BYTES, use_float=True))
            for name, number, element in read(events):
                if number >= 0:
                    yield name, number, element
                where = f"{path}: at or after {name}[{number + 1}]"
        except _Refused as fault:
            raise DataError(f"{where}: {fault}. Correct the file") from None
        except (ijson.JSONError, UnicodeDecodeError) as error:
            reason = re.split(r"\\n|\n", str(error).removeprefix("b'"))[0]
            if "UTF8" in reason or isinstance(error, UnicodeDecodeError):
                reason = "the text is not UTF-8. Convert the file to UTF-8"
            else:
                reason = f"not valid JSON: {reason}"
            raise DataError(f"{where}: {reason}") from None


def _elements(events: Iterator[Event], depth: int) -> Iterator[Any]:
    """The remaining elements of a list that lies in `depth` lists and objects, itself included."""
    for event, value in events:
        if event == "end_array":
            return
        yield _value(event, value, events, depth)


def _value(event: str, value: Any, events: Iterator[Event], depth: int) -> Any:
    """The value that begins with `event`."""
    if event not in _OPENING:
        return value
    if depth == MAX_DEPTH:
        raise _Refused(f"more than {MAX_DEPTH} lists and objects inside each other")
    if event == "start_array":
        return list(_elements(events, depth + 1))
    members: dict[str, Any] = {}
    for event, key in events:
        if event == "end_map":
            break
        if key in members:
            raise _Refused(f"the key {key[:60]!a} occurs twice in one object")
        members[key] = _value(*next(events), events, depth + 1)
    return members


def _skip(first: Event, events: Iterator[Event]) -> None:
    """Pass over the value that begins with the event `first`."""
    depth = int(first[0] in _OPENING)
    while depth:
        event = next(events)[0]
        depth += (event in _OPENING) - (event in _CLOSING)
