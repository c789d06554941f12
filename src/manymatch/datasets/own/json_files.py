"""COCO's files of captions, and Karpathy's JSON files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from manymatch.datasets.coco.annotations import captions_by_image
from manymatch.datasets.karpathy import read_all
from manymatch.datasets.own.record import Record, split_of_path
from manymatch.util.json_stream import elements


def form_of_object(path: Path) -> Literal["coco", "karpathy"] | None:
    """Return whose form a JSON object has: images with sentences, or annotations with a caption.

    Raises:
        DataError: the file is damaged, or has no such lists (`MissingList`).
    """
    for name, _, value in elements(path, ("images", "annotations")):
        keys = value.keys() if isinstance(value, dict) else ()
        if name == "annotations":
            return "coco" if "caption" in keys else None  # boxes or other annotations
        if "sentences" in keys:
            return "karpathy"
    return None


def read_karpathy_files(paths: Sequence[Path]) -> Iterator[Record]:
    """Yield the images with captions in the order of the files.

    Pictures of one name in several folders are told apart by `filepath`, which may also be a folder
    of the authors.
    """
    for path in paths:
        for folder, image in read_all(path):
            if image.captions:
                texts = [line.text for line in image.captions]
                name = f"{folder}/{image.file}" if folder else image.file
                yield Record(name, texts, image.captions[0].where, image.split)


def read_coco_files(paths: Sequence[Path], root: Path) -> Iterator[Record]:
    """Yield the images with captions. A file such as `captions_val2017.json` is of one split, and
    so is `val/captions.json` below `root`."""
    for path in paths:
        captions, names = captions_by_image(path)
        split = split_of_path(path.relative_to(root).as_posix())
        for image, lines in captions.items():
            fault = f"no image of the file has the id {image}" if image not in names else None
            name = names.get(image, f"{image:012}.jpg")
            if not names:  # a file of annotations alone: COCO's own names
                fault = None
            texts = [line.text for line in lines]
            yield Record(name, texts, lines[0].where, path_split=split, fault=fault)
