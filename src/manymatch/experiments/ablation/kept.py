"""Results of finished runs, one JSON file each, named after all that a run depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from manymatch.system import files

Result = dict[str, Any]


def key_of(**known: Any) -> str:
    """Equal runs have the same; the values are JSON's."""
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]


def read(path: Path) -> Result:
    result: Result = json.loads(path.read_text(encoding="utf-8"))
    return result


def finished(path: Path, work: Callable[[], Result]) -> Result:
    """What the file at `path` keeps; if there is none, the result of `work`, kept from now on."""
    if not path.is_file():
        files.write_json(path, work())
    return read(path)
