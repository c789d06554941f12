"""The English captions of Multi30K's task 2 (Elliott et al. 2016).

They are all captions of Flickr30K in Karpathy's splits: a list of image files for each split, and
for each caption of an image one file, whose lines correspond to those of the list.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manymatch.datasets.image_files import Image, Line
from manymatch.fetching.copying import copy_file
from manymatch.foreign.text_lines import numbered_lines
from manymatch.system.errors import DataError

_SPLITS = {"train": "train", "validation": "val", "test": "test_2016"}
_CAPTIONS = range(1, 6)


def is_multi30k(folder: Path) -> bool:
    """Return whether `folder` holds the lists and captions of task 2."""
    return folder.is_dir() and (folder / "train_images.txt").is_file()


def copy_multi30k(source: Path, target: Path) -> None:
    """Copy the lists and captions of the three splits."""
    target.mkdir()
    for name in _SPLITS.values():
        copy_file(source / f"{name}_images.txt", target / f"{name}_images.txt")
        for number in _CAPTIONS:
            path = _caption_file(source, name, number)
            copy_file(path, target / path.name)


def read_multi30k(folder: Path) -> Iterator[Image]:
    """Yield the images of each split in the order of its list, which is Karpathy's and SCAN's."""
    for split, name in _SPLITS.items():
        files = list(numbered_lines(folder / f"{name}_images.txt"))
        captions = [_captions(_caption_file(folder, name, k), len(files)) for k in _CAPTIONS]
        for row, (_, file) in enumerate(files):
            yield Image(file.strip(), split, [column[row] for column in captions])


def _captions(path: Path, count: int) -> list[Line]:
    lines = [Line(text, f"{path}:{number}") for number, text in numbered_lines(path)]
    if len(lines) != count:
        raise DataError(f"{path}: {len(lines)} captions, but the list has {count} images")
    return lines


def _caption_file(folder: Path, name: str, number: int) -> Path:
    packed = folder / f"{name}.{number}.en.gz"
    return packed if packed.is_file() else folder / f"{name}.{number}.en"
