"""Bring the captions of YouCook2 together under one folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manymatch.datasets.clips import without_pictures
from manymatch.datasets.youcook2.settings import Youcook2Settings
from manymatch.fetching.completeness import whole_json
from manymatch.fetching.copying import copy_file
from manymatch.fetching.gather import Gatherer, Usual
from manymatch.foreign.pickles import read_pickle
from manymatch.system.errors import DataError
from manymatch.system.files import write_json

ANNOTATIONS = "youcookii_annotations_trainval.json"
LISTS = {"train": "train.json", "test": "test.json"}
"""Split -> what is kept of its pickle: {"clips": [[ID, CAPTION], ...]}."""

USUAL: Usual = {
    "annotations": (ANNOTATIONS, f"annotations/{ANNOTATIONS}"),
    "train": ("youcook_train.pkl",),
    "test": ("youcook_val.pkl",),
}
_ADVICE = (
    "set annotations to youcookii_annotations_trainval.json, or train and test to HowTo100M's "
    "youcook_train.pkl and youcook_val.pkl (docs/datasets.md says where they are)"
)


def fetch(settings: Youcook2Settings, raw: Path, name: str) -> None:
    """Fill `raw`; raises `SourceError` or `ConfigError` for what is missing or unsound."""
    given = {key: getattr(settings, key) for key in USUAL}
    gatherer = Gatherer(name, raw, settings.folder, USUAL, given)
    if gatherer.has("train") and gatherer.has("test"):
        for split, file in LISTS.items():
            write_json(raw / file, {"clips": _captions(gatherer.one(split))})
    else:
        copy_file(gatherer.one("annotations", _ADVICE, whole_json()), raw / ANNOTATIONS)
    without_pictures(raw)


def _captions(path: Path) -> list[list[str]]:
    """Clips and captions of a pickle, without its features."""
    entries = read_pickle(path)
    if not isinstance(entries, list):
        raise DataError(f"{path}: expected a list of clips")
    return [_caption(entry, f"{path}: clip {number}") for number, entry in enumerate(entries)]


def _caption(entry: Any, where: str) -> list[str]:
    found = [entry.get(key) for key in ("id", "caption")] if isinstance(entry, Mapping) else []
    texts = [part for part in found if isinstance(part, str)]
    if len(texts) != 2:
        raise DataError(f"{where}: without an id and a caption")
    return texts
