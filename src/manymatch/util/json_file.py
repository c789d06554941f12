"""JSON files that fit in memory.

Our own files that decide a result hold the hash of their content, because a flipped bit in a
number or a word is valid JSON too.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from manymatch.util.errors import DataError, repeated
from manymatch.util.files import write_json
from manymatch.util.regular_file import read_regular

_HASH = "content_sha256"


def read_object(path: Path) -> dict[str, Any]:
    """The object in the file. Any other content is a `DataError`."""
    try:
        text = read_regular(path).decode("utf-8-sig")
        value = json.loads(text, object_pairs_hook=unique_members)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object")
    return value


def unique_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of a JSON object, for `object_pairs_hook` of `json.loads`.

    Raises:
        ValueError: two members have the same key. Python's reader would keep the last.
    """
    value = dict(members)
    if len(value) < len(members):
        twice = repeated(key for key, _ in members) or ""
        raise ValueError(f"the key {twice[:60]!a} stands twice in one object")
    return value


def write_hashed_object(target: Path, value: dict[str, Any]) -> None:
    """Write `value` with the hash of its content, completely or not at all."""
    write_json(target, value | {_HASH: _content_hash(value)})


def read_hashed_object(path: Path, remedy: str) -> dict[str, Any]:
    """The object that `write_hashed_object` wrote.

    Args:
        remedy: a sentence that says how to make the file again, for the error message.

    Raises:
        DataError: the file cannot be read, has no hash, or has other content than its hash.
    """
    try:
        value = read_object(path)
        damaged = value.pop(_HASH, None) != _content_hash(value)
    except DataError as error:
        raise DataError(f"{error}. {remedy}") from None
    except RecursionError:
        raise DataError(f"{path}: lists are nested too deeply. {remedy}") from None
    if damaged:
        raise DataError(
            f"{path}: damaged or edited, or of an older version, because its content does not have "
            f"the hash '{_HASH}'. {remedy}"
        )
    return value


def _content_hash(value: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
