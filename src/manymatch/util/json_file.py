"""JSON files that fit in memory."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manymatch.util.errors import DataError, repeated
from manymatch.util.regular_file import read_regular


def read_object(path: Path, most_bytes: int | None = None) -> dict[str, Any]:
    """The object in the file. Any other content is a `DataError`, and so is a file of more than
    `most_bytes`, because a parsed object takes up to eighty times as much memory."""
    try:
        text = read_regular(path, most_bytes).decode("utf-8-sig")
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
        raise ValueError(f"the key {twice[:60]!a} occurs twice in one object")
    return value


def content_hash(value: Mapping[str, Any]) -> str:
    """SHA-256 of an object. A file that seals others holds its own hash, because a flipped bit in a
    number or a word is valid JSON, too."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
