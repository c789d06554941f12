"""Karpathy's JSON files of Flickr8k, Flickr30K and COCO (Karpathy and Fei-Fei 2015).

A file has a list `images`; each image has a split and sentences. COCO's split `restval` is training
data, as in all later work.
"""

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from manymatch.datasets.base import SPLITS
from manymatch.datasets.fetching.archives import extract, is_archive, member_names, whole_members
from manymatch.datasets.fetching.disk import copy_file
from manymatch.datasets.fetching.sources import Source
from manymatch.datasets.fetching.transfer import Check
from manymatch.datasets.image_files import Image, Line
from manymatch.datasets.rows import list_rows
from manymatch.util.errors import DataError, SourceError
from manymatch.util.files import remove
from manymatch.util.json_stream import field

SPLIT_NAMES = {"train": "train", "restval": "train", "val": "validation", "test": "test"}
PUBLISHED = Source(
    url="https://cs.stanford.edu/people/karpathy/deepimagesent/caption_datasets.zip",
    mirrors=(
        "https://huggingface.co/datasets/gpantaz/karpathy_split/resolve/main/caption_datasets.zip",
    ),
    size=36745453,
    sha256="4cfd70132527b80933105e5829dc9034eaab9573482e2e680abbab6130244817",
)
"""The files of all three data sets."""
_SHORT_NAME = "dataset.json"
"""The name of the file in archives of a single data set, such as `coco.zip`."""


def read_karpathy(path: Path, identified: bool = False) -> Iterator[Image]:
    """Yield the images in the file's order; `identified`: with the ids that COCO's file has.

    Raises:
        DataError: a fault of the file, with its position. So is an image without a caption, and a
            second image with the same file name.
    """
    files = set()
    for number, (_, image) in enumerate(read_all(path, identified)):
        where = f"{path}: images[{number}]"
        if not image.captions:
            raise DataError(f"{where}: image {image.file} has no caption")
        if image.file in files:
            raise DataError(f"{where}: a second image {image.file}")
        files.add(image.file)
        yield image


def read_all(path: Path, identified: bool = False) -> Iterator[tuple[str, Image]]:
    """Yield the folder of each image, which may be empty, and the image, in the file's order.

    Raises:
        DataError: a fault of the file, with its position. An image may have no captions, and images
            in different folders may have the same file name.
    """
    files = set()
    for _, where, value in list_rows(path, "images"):
        image = _image(value, where, identified)
        folder = field(value, "filepath", str, where) if "filepath" in value else ""
        if (folder, image.file) in files:
            raise DataError(f"{where}: a second image {image.file}")
        files.add((folder, image.file))
        yield folder, image


def read_by_split(path: Path, identified: bool = False) -> list[Image]:
    """Return the training images, then validation, then test images, each in the file's order.

    SCAN and all later evaluations use this order.
    """
    images = read_karpathy(path, identified)
    return sorted(images, key=lambda image: SPLITS.index(image.split))


def copy_karpathy(source: Path, name: str, target: Path) -> None:
    """Copy the JSON file `name` to `target`.

    `source` is the file itself or an archive with it, such as `caption_datasets.zip`. In an archive
    the file may also be called `dataset.json`.
    """
    if not is_archive(source):
        copy_file(source, target)
        return
    unpacked = target.with_name("unpacked")
    extract(source, unpacked, _is_called(name))
    files = sorted(path for path in unpacked.rglob("*") if path.is_file())
    if len(files) != 1:
        raise SourceError(f"{source}: expected one file {name} in it, found {len(files)}")
    files[0].rename(target)
    remove(unpacked)


def holds_karpathy(source: Path, name: str) -> bool:
    """Return whether `source` is a zip archive that contains the JSON file."""
    is_zip = source.is_file() and zipfile.is_zipfile(source)
    return is_zip and any(map(_is_called(name), member_names(source)))


def whole_karpathy(name: str) -> Check:
    """Return a check that a download is complete and `copy_karpathy` can use it."""

    def read_all(path: Path) -> None:
        for _ in read_karpathy(path):
            pass

    return whole_members(_is_called(name), read_all)


def _is_called(name: str) -> Callable[[str], bool]:
    return lambda member: PurePosixPath(member).name in (name, _SHORT_NAME)


def _image(value: Any, where: str, identified: bool) -> Image:
    file = field(value, "filename", str, where)
    split = field(value, "split", str, where)
    if split not in SPLIT_NAMES:
        raise DataError(f"{where}: unknown split '{split}' (known: {', '.join(SPLIT_NAMES)})")
    sentences = field(value, "sentences", list, where)
    image_id = _number(value, "cocoid", where, identified)
    lines = []
    for k, line in enumerate(sentences):
        location = f"{where}.sentences[{k}]"
        text = field(line, "raw", str, location)
        lines.append(Line(text, location, _number(line, "sentid", location, identified)))
    return Image(file, SPLIT_NAMES[split], lines, image_id)


def _number(value: Any, key: str, where: str, identified: bool) -> str | None:
    number = field(value, key, int, where) if key in value else None
    return str(number) if identified and number is not None else None
