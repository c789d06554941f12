"""Indexes by small models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import manymatch
from manymatch import Index
from manymatch.search.index.build import build
from manymatch.search.index.sources import source_of
from manymatch.util.parts import Parts


def made_index(
    source: Path, model_folder: Path, target: Path, table: Path | None = None, **options: Any
) -> Index:
    """The index of `source` in the new folder `target`, by the model in `model_folder`."""
    model = manymatch.load(model_folder, "cpu")
    parts = Parts(target.with_suffix(".parts"))
    build(source_of(source), model, target, str(model_folder), table, parts=parts, **options)
    return Index.open(options.get("url") or target, model)
