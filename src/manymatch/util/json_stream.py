"""Lists in JSON files that are too large for memory, read element by element with ijson.

COCO's instances and Karpathy's JSON files have hundreds of megabytes, and take several times as
much as Python objects. Such a file is one object that contains a few lists, or one list.
"""

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import ijson

from manymatch.util.errors import DataError
from manymatch.util.regular_file import open_regular

_READ_BYTES = 2**16
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
            missing, or values are nested very deeply.
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
                for number, element in enumerate(_elements(events)):
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
        for number, element in enumerate(_elements(events)):
            yield "", number, element
        next(events, None)  # what follows the list is a fault

    return (element for _, _, element in _read(path, read))


def nested_numbers(path: Path, depth: int) -> Iterator[tuple[tuple[str, ...], float]]:
    """(keys, number) for every number inside `depth` objects, and no list, of a UTF-8 file.

    Raises:
        DataError: the file is not JSON.
    """

    def read(events: Iterator[Event]) -> Iterator[Element]:
        keys: list[str | None] = []  # of the open objects; None for a list
        count = 0
        for event, value in events:
            if event == "map_key":
                keys[-1] = value
            elif event in _OPENING:
                keys.append(None)
            elif event in _CLOSING:
                keys.pop()
            elif event == "number" and len(keys) == depth and None not in keys:
                yield "numbers", count, (tuple(keys), value)
                count += 1

    return (element for _, _, element in _read(path, read))


def is_list(path: Path) -> bool:
    """Whether a JSON file begins as a list."""
    with open_regular(path) as stream:
        return stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def field(value: Any, key: str, kind: type, where: str) -> Any:
    """`value[key]`, which must have the type `kind`.

    Raises:
        DataError: the key is missing or has another type; the message starts with `where`.
    """
    item = value.get(key) if isinstance(value, dict) else None
    if not isinstance(item, kind) or isinstance(item, bool):
        raise DataError(f"{where}: expected '{key}' of type {kind.__name__}, found {item!r:.60}")
    return item


def _read(path: Path, read: Callable[[Iterator[Event]], Iterator[Element]]) -> Iterator[Element]:
    """The elements that `read` takes from the events of the file. A fault of the file is a
    `DataError` that names the list and the element."""
    where = str(path)
    with open_regular(path) as stream:
        if stream.read(3) != b"\xef\xbb\xbf":  # the byte order mark
            stream.seek(0)
        try:
            events = iter(ijson.basic_parse(stream, buf_size=_READ_BYTES, use_float=True))
            for name, number, element in read(events):
                if number >= 0:
                    yield name, number, element
                where = f"{path}: at or after {name}[{number + 1}]"
        except RecursionError:
            raise DataError(f"{where}: lists nested too deeply. Correct the file") from None
        except (ijson.JSONError, UnicodeDecodeError) as error:
            reason = re.split(r"\\n|\n", str(error).removeprefix("b'"))[0]
            if "UTF8" in reason or isinstance(error, UnicodeDecodeError):
                reason = "the text is not UTF-8. Convert the file to UTF-8"
            else:
                reason = f"not valid JSON: {reason}"
            raise DataError(f"{where}: {reason}") from None
        except ValueError as fault:
            raise DataError(f"{where}: {fault}. Correct the file") from None


def _elements(events: Iterator[Event]) -> Iterator[Any]:
    """The remaining elements of a list."""
    for event, value in events:
        if event == "end_array":
            return
        yield _value(event, value, events)


def _value(event: str, value: Any, events: Iterator[Event]) -> Any:
    """The value that begins with `event`."""
    if event == "start_array":
        return list(_elements(events))
    if event != "start_map":
        return value
    members: dict[str, Any] = {}
    for event, key in events:
        if event == "end_map":
            break
        if key in members:
            raise ValueError(f"the key {key[:60]!a} occurs twice in one object")
        members[key] = _value(*next(events), events)
    return members


def _skip(first: Event, events: Iterator[Event]) -> None:
    """Pass over the value that begins with the event `first`."""
    depth = int(first[0] in _OPENING)
    while depth:
        event = next(events)[0]
        depth += (event in _OPENING) - (event in _CLOSING)
