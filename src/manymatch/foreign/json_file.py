"""JSON files that fit in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from manymatch.foreign.regular_file import read_regular
from manymatch.system.errors import DataError


def read_object(path: Path) -> dict[str, Any]:
    """The object in the file. Any other content is a `DataError`."""
    try:
        value = json.loads(read_regular(path).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object")
    return value
