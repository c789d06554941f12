"""The publishers' form of Flickr8k: lines `FILE.jpg#k<TAB>caption`, and a list of files for each
split."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from manymatch.datasets.image_files import Image, Line
from manymatch.foreign.text_lines import columns, numbered_lines
from manymatch.system.errors import DataError
from manymatch.system.progress import say

TOKENS = "Flickr8k.token.txt"
LISTS = {
    "train": "Flickr_8k.trainImages.txt",
    "validation": "Flickr_8k.devImages.txt",
    "test": "Flickr_8k.testImages.txt",
}


def read_images(raw: Path) -> list[Image]:
    """Return the images of the three lists with their captions in the order of their numbers.

    Captions of images in no list are left out and counted: the published token file has captions
    for 91 images without a split and for a file (`...jpg.1`) that does not exist.

    Raises:
        DataError: an image in a list has no caption.
    """
    captions = _captions(raw / TOKENS)
    splits = _splits(raw)
    images = []
    for file, (split, where) in splits.items():
        if file not in captions:
            raise DataError(f"{where}: image {file} has no caption in {TOKENS}")
        lines = [
            Line(text, line_where, f"{file}#{number}")
            for number, text, line_where in sorted(captions[file])
        ]
        images.append(Image(file, split, lines))
    _report_unused(captions, splits)
    return images


def test_files(raw: Path) -> set[str]:
    """Return the files of the test split."""
    return {file for file, (split, _) in _splits(raw).items() if split == "test"}


_NumberedCaptions = dict[str, list[tuple[int, str, str]]]
"""File -> number, text and position (file:line) of each caption."""


def _captions(path: Path) -> _NumberedCaptions:
    captions: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
    for number, text in numbered_lines(path):
        where = f"{path}:{number}"
        key, caption = columns(text, 2, where)
        file, hash_sign, order = key.rpartition("#")
        if not (file and hash_sign and order.isascii() and order.isdigit()):
            raise DataError(f"{where}: expected FILE#NUMBER before the tab, found {key!a}")
        captions[file].append((int(order), caption, where))
    return captions


def _splits(raw: Path) -> dict[str, tuple[str, str]]:
    """Return the split of each file, and the position (file:line) in its list."""
    splits: dict[str, tuple[str, str]] = {}
    for split, name in LISTS.items():
        for number, text in numbered_lines(raw / name):
            file, where = text.strip(), f"{raw / name}:{number}"
            if file in splits:
                raise DataError(f"{where}: image {file} is listed already, in {splits[file][1]}")
            splits[file] = split, where
    return splits


def _report_unused(captions: _NumberedCaptions, splits: dict[str, tuple[str, str]]) -> None:
    unused = captions.keys() - splits.keys()
    if unused:
        count = sum(len(captions[file]) for file in unused)
        say(f"{TOKENS}: left out {count} captions of {len(unused)} images that are in no split")
