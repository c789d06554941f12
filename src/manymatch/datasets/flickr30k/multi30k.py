"""The English captions of Multi30K's task 2 (Elliott et al. 2016): all of Flickr30K's in Karpathy's
splits, one file for each caption of an image, line by line with a list of files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from manymatch.fetching.copying import copy_file
from manymatch.foreign.text_lines import numbered_lines
from manymatch.system.errors import DataError

_SPLITS = {"train": "train", "validation": "val", "test": "test_2016"}
_CAPTIONS = range(1, 6)


@dataclass(frozen=True)
class MultiImage:
    """An image with its five captions: text and where it stands."""

    file: str
    split: str
    captions: tuple[tuple[str, str], ...]


def is_multi30k(folder: Path) -> bool:
    return folder.is_dir() and (folder / "train_images.txt").is_file()


def copy_multi30k(source: Path, target: Path) -> None:
    """Copy the lists and captions of the three splits."""
    target.mkdir()
    for name in _SPLITS.values():
        copy_file(_list_file(source, name), target / f"{name}_images.txt")
        for number in _CAPTIONS:
            path = _caption_file(source, name, number)
            copy_file(path, target / path.name)


def read_multi30k(folder: Path) -> Iterator[MultiImage]:
    """The images of each split in the order of its list, which is Karpathy's and SCAN's."""
    for split, name in _SPLITS.items():
        files = list(numbered_lines(_list_file(folder, name)))
        captions = [_captions(_caption_file(folder, name, k), len(files)) for k in _CAPTIONS]
        for row, (_, file) in enumerate(files):
            yield MultiImage(file.strip(), split, tuple(column[row] for column in captions))


def _captions(path: Path, count: int) -> list[tuple[str, str]]:
    lines = [(text, f"{path}:{number}") for number, text in numbered_lines(path)]
    if len(lines) != count:
        raise DataError(f"{path}: {len(lines)} captions, but its list has {count} images")
    return lines


def _list_file(folder: Path, name: str) -> Path:
    return folder / f"{name}_images.txt"


def _caption_file(folder: Path, name: str, number: int) -> Path:
    packed = folder / f"{name}.{number}.en.gz"
    return packed if packed.is_file() else folder / f"{name}.{number}.en"
