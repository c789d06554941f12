"""The captions of a SCAN `*_precomp` folder, also as VSE-infinity has them.

`{train,dev,test,testall}_caps.txt` hold a caption a line, five lines an image, in the order of the
features beside them. `*_ids.txt`, where they are, hold an image's id once, or once a caption;
`id_mapping.json`, in the folder or above it, the file of an id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from manymatch.fetching.copying import copy_file
from manymatch.foreign.json_file import read_object
from manymatch.foreign.text_lines import numbered_lines
from manymatch.system.errors import DataError

CAPTIONS_PER_IMAGE = 5
_SPLITS = {"train": ("train",), "validation": ("dev",), "test": ("testall", "test")}
"""Of two files the first that is there: COCO's `testall` holds all 5,000 images."""
_MAPPING = "id_mapping.json"


@dataclass(frozen=True)
class PrecompImage:
    """An image. `id` and `file` (without folders) where the folder tells them."""

    split: str
    number: int
    id: str | None
    file: str | None
    captions: tuple[tuple[str, str], ...]
    """Text and where it stands."""


def is_precomp(folder: Path) -> bool:
    """Whether there are captions in SCAN's form in `folder`."""
    return folder.is_dir() and any(folder.glob("*_caps.txt"))


def has_all_splits(folder: Path) -> bool:
    """Whether there are captions in SCAN's form of every split."""
    return all(
        any((folder / f"{name}_caps.txt").is_file() for name in names) for names in _SPLITS.values()
    )


def copy_precomp(source: Path, target: Path) -> None:
    """Copy the text files of a folder; its features stay where they are."""
    target.mkdir()
    for pattern in ("*_caps.txt", "*_ids.txt"):
        for path in sorted(source.glob(pattern)):
            copy_file(path, target / path.name)
    for folder in (source, source.parent):
        if (folder / _MAPPING).is_file():
            copy_file(folder / _MAPPING, target / _MAPPING)
            return


def read_precomp(folder: Path) -> Iterator[PrecompImage]:
    """The images of all splits, training first, in the files' order.

    Raises `DataError` for captions that are not five an image and ids that do not fit them.
    """
    mapping = read_object(folder / _MAPPING) if (folder / _MAPPING).is_file() else {}
    for split, names in _SPLITS.items():
        name = next((name for name in names if (folder / f"{name}_caps.txt").is_file()), None)
        if name is not None:
            yield from _read_split(folder, split, name, mapping)


def _read_split(
    folder: Path, split: str, name: str, mapping: dict[str, object]
) -> Iterator[PrecompImage]:
    captions = _lines(folder / f"{name}_caps.txt")
    if len(captions) % CAPTIONS_PER_IMAGE:
        raise DataError(
            f"{folder / name}_caps.txt: {len(captions)} lines; expected {CAPTIONS_PER_IMAGE} for "
            "each image"
        )
    ids = _image_ids(folder / f"{name}_ids.txt", len(captions))
    for number in range(len(captions) // CAPTIONS_PER_IMAGE):
        first = number * CAPTIONS_PER_IMAGE
        image = ids[number] if ids else None
        file = mapping.get(image) if image is not None else None
        yield PrecompImage(
            split,
            number,
            image,
            PurePosixPath(str(file)).name if file is not None else None,
            tuple(captions[first : first + CAPTIONS_PER_IMAGE]),
        )


def _lines(path: Path) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for number, text in numbered_lines(path):
        if number != len(lines) + 1:
            raise DataError(f"{path}:{number - 1}: an empty line; it would shift all after it")
        lines.append((text, f"{path}:{number}"))
    return lines


def _image_ids(path: Path, captions: int) -> list[str] | None:
    """One id for each image; None without the file."""
    if not path.is_file():
        return None
    lines = _lines(path)
    ids = [text.strip() for text, _ in lines]
    if len(ids) == captions:
        ids = _once_an_image(lines)
    if len(ids) * CAPTIONS_PER_IMAGE != captions:
        raise DataError(f"{path}: {len(lines)} ids do not fit {captions} captions")
    return ids


def _once_an_image(lines: list[tuple[str, str]]) -> list[str]:
    for first in range(0, len(lines), CAPTIONS_PER_IMAGE):
        group = lines[first : first + CAPTIONS_PER_IMAGE]
        odd = next((where for text, where in group if text.strip() != group[0][0].strip()), None)
        if odd:
            raise DataError(f"{odd}: another image's id among those of one image")
    return [text.strip() for text, _ in lines[::CAPTIONS_PER_IMAGE]]
