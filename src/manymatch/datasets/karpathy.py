"""Karpathy's form of Flickr8k, Flickr30K and COCO: one JSON file with `images[]`, each with its
split and sentences (Karpathy and Fei-Fei 2015). COCO's `restval` is training data, as in the field.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from manymatch.datasets.base import SPLITS
from manymatch.fetching.archives import extract, is_archive, member_names
from manymatch.fetching.completeness import whole_members
from manymatch.fetching.copying import copy_file
from manymatch.fetching.transfer import Check
from manymatch.foreign.json_stream import elements
from manymatch.system.errors import DataError, SourceError
from manymatch.system.files import remove

SPLIT_NAMES = {
    "train": "train",
    "restval": "train",
    "val": "validation",
    "test": "test",
}
_BARE = "dataset.json"
"""What the file is called in the archives of one dataset (`coco.zip`)."""


@dataclass(frozen=True)
class Sentence:
    """A caption. `sentid`: in COCO the annotation's id."""

    text: str
    sentid: int | None
    where: str


@dataclass(frozen=True)
class Entry:
    """An image of the file. `cocoid` in COCO alone."""

    file: str
    split: str
    cocoid: int | None
    sentences: tuple[Sentence, ...]
    where: str


def read_karpathy(path: Path) -> Iterator[Entry]:
    """The images in the file's order. A fault is a `DataError` with the place."""
    files = set()
    for _, number, value in elements(path, ("images",)):
        entry = _entry(value, f"{path}: images[{number}]")
        if entry.file in files:
            raise DataError(f"{entry.where}: a second image {entry.file}")
        files.add(entry.file)
        yield entry


def by_split(path: Path) -> Iterator[Entry]:
    """The images, training first, each split in the file's order: that of SCAN's and all later
    evaluations."""
    entries = list(read_karpathy(path))
    entries.sort(key=lambda entry: SPLITS.index(entry.split))
    return iter(entries)


def copy_karpathy(source: Path, name: str, target: Path) -> None:
    """Put the JSON file as `target`: `source` itself, or the member `name` (or `dataset.json`) of
    an archive, such as `caption_datasets.zip`."""
    if not is_archive(source):
        copy_file(source, target)
        return
    unpacked = target.with_name("unpacked")
    extract(source, unpacked, _called(name))
    found = sorted(path for path in unpacked.rglob("*") if path.is_file())
    if len(found) != 1:
        raise SourceError(f"{source}: expected one file {name} in it, found {len(found)}")
    found[0].rename(target)
    remove(unpacked)


def holds_karpathy(source: Path, name: str) -> bool:
    """Whether `source` is a zip archive with the JSON file in it."""
    return zipfile.is_zipfile(source) and any(map(_called(name), member_names(source)))


def whole_karpathy(name: str) -> Check:
    """That a download is what `copy_karpathy` takes."""
    return whole_members(_called(name), _read_all)


def _read_all(path: Path) -> None:
    for _ in read_karpathy(path):
        pass


def _called(name: str) -> Callable[[str], bool]:
    return lambda member: PurePosixPath(member).name in (name, _BARE)


def _entry(value: Any, where: str) -> Entry:
    file = field(value, "filename", str, where)
    split = field(value, "split", str, where)
    if split not in SPLIT_NAMES:
        raise DataError(f"{where}: unknown split '{split}' (known: {', '.join(SPLIT_NAMES)})")
    sentences = field(value, "sentences", list, where)
    if not sentences:
        raise DataError(f"{where}: image {file} has no caption")
    cocoid = field(value, "cocoid", int, where) if "cocoid" in value else None
    lines = [_sentence(line, f"{where}.sentences[{k}]") for k, line in enumerate(sentences)]
    return Entry(file, SPLIT_NAMES[split], cocoid, tuple(lines), where)


def _sentence(value: Any, where: str) -> Sentence:
    text = field(value, "raw", str, where)
    sentid = field(value, "sentid", int, where) if "sentid" in value else None
    return Sentence(text, sentid, where)


def field(value: Any, key: str, kind: type, where: str) -> Any:
    """`value[key]`, which must be of type `kind`; else a `DataError` that names `where`."""
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, kind) or isinstance(found, bool):
        raise DataError(f"{where}: expected '{key}' of type {kind.__name__}, found {found!r:.60}")
    return found
