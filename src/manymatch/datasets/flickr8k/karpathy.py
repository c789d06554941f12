"""Karpathy's form: one JSON file with `images[]`, each with its split and sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from manymatch.datasets.flickr8k.image import Image, Line
from manymatch.datasets.flickr8k.names import KARPATHY
from manymatch.errors import DataError

_SPLITS = {"train": "train", "val": "validation", "test": "test"}
_LARGEST = 2**30


def read(raw: Path) -> list[Image]:
    """The images of the JSON file; a sentence's place in its list is the caption's number."""
    path = raw / KARPATHY
    entries = _load(path)
    images: dict[str, Image] = {}
    for number, entry in enumerate(entries):
        where = f"{path}: images[{number}]"
        image = _image(entry, where)
        if image.file in images:
            raise DataError(f"{where}: a second image {image.file}")
        images[image.file] = image
    return list(images.values())


def test_files(raw: Path) -> set[str]:
    """The images of the test split."""
    return {image.file for image in read(raw) if image.split == "test"}


def _load(path: Path) -> list[Any]:
    if path.stat().st_size > _LARGEST:
        raise DataError(f"{path}: larger than a gibibyte; not a caption file?")
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not valid JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON: {error}") from None
    entries = value.get("images") if isinstance(value, dict) else None
    if not isinstance(entries, list):
        raise DataError(f"{path}: expected a list 'images', as in Karpathy's dataset files")
    return entries


def _image(entry: Any, where: str) -> Image:
    file = _field(entry, "filename", str, where)
    split = _field(entry, "split", str, where)
    if split not in _SPLITS:
        raise DataError(f"{where}: unknown split '{split}' (known: {', '.join(_SPLITS)})")
    sentences = _field(entry, "sentences", list, where)
    if not sentences:
        raise DataError(f"{where}: image {file} has no caption")
    captions = [_line(value, order, where) for order, value in enumerate(sentences)]
    return Image(file, _SPLITS[split], tuple(captions))


def _line(value: Any, order: int, where: str) -> Line:
    place = f"{where}.sentences[{order}]"
    return order, _field(value, "raw", str, place), place


def _field(value: Any, key: str, kind: type, where: str) -> Any:
    field = value.get(key) if isinstance(value, dict) else None
    if not isinstance(field, kind):
        raise DataError(f"{where}: expected '{key}' of type {kind.__name__}, found {field!r:.60}")
    return field
