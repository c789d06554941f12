"""Reading what `scenes` wrote beside its pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manymatch.scene_graphs.graph import SceneGraph
from manymatch.system.errors import DataError

SCENES, CAPTIONS, BOXES = "scenes.jsonl", "captions.jsonl", "boxes.parquet"


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file; a line that is none is a `DataError`."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; make it again with `manymatch download scenes`")
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError(f"{path}:{number}: not JSON: {error}") from None
            if not isinstance(row, dict):
                raise DataError(f"{path}:{number}: expected an object, found {type(row).__name__}")
            yield row


def truth_graphs(raw: Path) -> dict[str, SceneGraph]:
    """The true scene graph of every caption's text, by caption_id."""
    return {row["caption_id"]: SceneGraph.from_dict(row["graph"]) for row in rows(raw / CAPTIONS)}
