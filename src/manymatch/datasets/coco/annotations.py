"""COCO's own annotation files: captions, selected and ordered by arrays of caption ids, and the
categories of an image's instances."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from manymatch.datasets.image_files import Image, Line
from manymatch.datasets.rows import list_rows
from manymatch.util.errors import DataError
from manymatch.util.json_stream import field
from manymatch.util.numpy_file import load_array
from manymatch.util.progress import say

ID_FILES = {
    "coco_train_ids.npy": "train",
    "coco_restval_ids.npy": "train",
    "coco_dev_ids.npy": "validation",
    "coco_test_ids.npy": "test",
}
"""Array of caption ids -> split."""
_NUMBER = re.compile(r"(\d{12})\.[a-zA-Z]+$")


def read_annotations(files: Iterable[Path], ids: Path, only_present: bool) -> Iterator[Image]:
    """Yield the images of the arrays in the folder `ids`, in their order.

    If `only_present`, caption ids that are in none of `files` are left out and counted.

    Raises:
        DataError: without `only_present`, a caption id is in none of `files`.
    """
    captions, names = read_captions(files)
    missing = 0
    for file, split in ID_FILES.items():
        selected = []
        numbers = load_array(ids / file)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            kind = f"{numbers.dtype} {numbers.shape}"
            raise DataError(f"{ids / file}: expected a vector of whole numbers, found {kind}")
        for number in numbers.tolist():
            if number in captions:
                selected.append(captions[number])
            elif only_present:
                missing += 1
            else:
                raise DataError(
                    f"{ids / file}: caption {number} is in none of the annotation files. Name "
                    "those of training and validation images, or set only_present"
                )
        for image, group in groupby(selected, key=itemgetter(0)):
            lines = [line for _, line in group]
            yield Image(names.get(image, f"{image:012}.jpg"), split, lines, str(image))
    if missing:
        say(f"only_present: left out {missing} caption ids that are in none of the files")


def files_below(folder: Path) -> list[Path]:
    """Return the annotation files below `folder`, sorted by path."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def read_captions(files: Iterable[Path]) -> tuple[dict[int, tuple[int, Line]], dict[int, str]]:
    """Return (image id, caption) by caption id, and the file names by image id.

    Raises:
        DataError: two captions or two images have the same id. The same one may stand twice.
    """
    captions: dict[int, tuple[int, Line]] = {}
    names: dict[int, str] = {}
    for path in files:
        for image, line, value in _annotations(path, names):
            key = field(value, "id", int, line.where)
            line = line._replace(id=str(key))
            earlier_image, earlier = captions.setdefault(key, (image, line))
            if (earlier_image, earlier.text) != (image, line.text):
                raise DataError(
                    f"{line.where}: a second caption with the id {key}, which {earlier.where} has. "
                    "The ids of captions must be unique"
                )
    return captions, names


def captions_by_image(path: Path) -> tuple[dict[int, list[Line]], dict[int, str]]:
    """Return the captions and the file names of a file by image id.

    The ids of the captions are not used: some programs number them anew for each image.

    Raises:
        DataError: two images have the same id.
    """
    names: dict[int, str] = {}
    captions: dict[int, list[Line]] = {}
    for image, line, _ in _annotations(path, names):
        captions.setdefault(image, []).append(line)
    return captions, names


def _annotations(path: Path, names: dict[int, str]) -> Iterator[tuple[int, Line, Any]]:
    """Yield image id, text and annotation of each caption; add the images' files to `names`."""
    for kind, where, value in list_rows(path, "images", "annotations"):
        if kind == "annotations":
            image = field(value, "image_id", int, where)
            yield image, Line(field(value, "caption", str, where), where), value
            continue
        key = field(value, "id", int, where)
        file = field(value, "file_name", str, where)
        earlier = names.setdefault(key, file)
        if earlier != file and (coco_id(file) is None or coco_id(file) != coco_id(earlier)):
            raise DataError(
                f"{where}: a second image with the id {key}: {file}, after {earlier}. Give each "
                "image an id of its own, or its captions cannot be told from those of the other"
            )


def coco_id(file: str) -> int | None:
    """Return the image's number in a file name, or None.

    Examples: `COCO_val2014_000000391895.jpg`, or `000000391895.jpg` in the release of 2017.
    """
    match = _NUMBER.search(file)
    return int(match[1]) if match else None


def read_categories(files: Iterable[Path]) -> dict[int, list[int]]:
    """Return the categories of each image's instances, ascending, by image id.

    COCO numbers its 80 categories from 1 to 90. The files are read as a stream, because they have
    hundreds of megabytes.
    """
    categories: defaultdict[int, set[int]] = defaultdict(set)
    for path in files:
        for _, where, value in list_rows(path, "annotations"):
            image = field(value, "image_id", int, where)
            categories[image].add(field(value, "category_id", int, where))
    return {image: sorted(numbers) for image, numbers in sorted(categories.items())}
