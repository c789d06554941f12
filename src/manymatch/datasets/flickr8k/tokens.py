"""The publishers' form: `FILE.jpg#k<TAB>caption` lines, and a list of files for each split."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from manymatch.datasets.flickr8k.image import Image, Line
from manymatch.datasets.flickr8k.names import LISTS, TOKENS
from manymatch.foreign.text_lines import columns, numbered_lines
from manymatch.system.errors import DataError
from manymatch.system.progress import say


def read(raw: Path) -> list[Image]:
    """The images of the three lists with their captions.

    Captions of images in no list are left out, and counted: the published token file has some for
    91 images without a split and for one file (`...jpg.1`) that does not exist. An image in a list
    without captions is a `DataError`.
    """
    captions = _captions(raw / TOKENS)
    splits = _splits(raw)
    images = []
    for file, (split, where) in splits.items():
        if file not in captions:
            raise DataError(f"{where}: image {file} has no caption in {TOKENS}")
        images.append(Image(file, split, tuple(sorted(captions[file]))))
    _tell_unused(captions, splits)
    return images


def test_files(raw: Path) -> set[str]:
    """The images of the test split."""
    return {file for file, (split, _) in _splits(raw).items() if split == "test"}


def _captions(path: Path) -> dict[str, list[Line]]:
    captions: defaultdict[str, list[Line]] = defaultdict(list)
    for number, text in numbered_lines(path):
        where = f"{path}:{number}"
        key, caption = columns(text, 2, where)
        file, hash_sign, order = key.rpartition("#")
        if not (file and hash_sign and order.isascii() and order.isdigit()):
            raise DataError(f"{where}: expected FILE#NUMBER before the tab, found {key!a}")
        captions[file].append((int(order), caption, where))
    return captions


def _splits(raw: Path) -> dict[str, tuple[str, str]]:
    """File -> (split, where it is listed)."""
    splits: dict[str, tuple[str, str]] = {}
    for split, name in LISTS.items():
        for number, text in numbered_lines(raw / name):
            file, where = text.strip(), f"{raw / name}:{number}"
            if file in splits:
                raise DataError(f"{where}: image {file} is listed already, in {splits[file][1]}")
            splits[file] = split, where
    return splits


def _tell_unused(captions: dict[str, list[Line]], splits: dict[str, tuple[str, str]]) -> None:
    unused = captions.keys() - splits.keys()
    if unused:
        count = sum(len(captions[file]) for file in unused)
        say(f"{TOKENS}: left out {count} captions of {len(unused)} images that are in no split")
