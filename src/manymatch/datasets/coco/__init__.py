"""COCO captions (Chen et al. 2015) in Karpathy's splits: 113,287 training images (with `restval`),
5,000 validation and 5,000 test images with five captions each.

Where Karpathy's file has more than five captions, the first five are used, which the arrays of
caption ids and SCAN's files also hold. The ids of images and captions are COCO's own, as in ECCV
Caption and CxC. A `*_precomp` folder has no caption ids: a caption is then IMAGE#k. Labels are the
categories of the image's instances. Images are in the order of Karpathy's file, so that consecutive
thousands of the test split are the five folds of the 1K protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from manymatch.datasets.base import Caption, Dataset
from manymatch.datasets.coco.annotations import files_below, read_annotations
from manymatch.datasets.coco.coco_files import (
    CAPTIONS,
    IDS,
    KARPATHY,
    LABELS,
    PRECOMP,
    CocoSettings,
    collect,
)
from manymatch.datasets.image_files import Image, caption_rows
from manymatch.datasets.image_folder import read_image_folder
from manymatch.datasets.karpathy import read_by_split
from manymatch.datasets.precomp import CAPTIONS_PER_IMAGE, read_precomp
from manymatch.foreign.json_file import read_object
from manymatch.system.errors import DataError

_NUMBER = re.compile(r"(\d{12})\.[a-zA-Z]+$")


class Coco(Dataset):
    settings_model = CocoSettings

    def download(self, settings: CocoSettings, raw: Path) -> None:
        """Put the captions under `raw`, and the images or a record of where they are."""
        collect(settings, raw)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """Yield the rows in the order of Karpathy's file or of SCAN's, training images first."""
        return caption_rows(raw, _images(raw), key=coco_id)


def coco_id(file: str) -> int | None:
    """Return the image's number in a file name, or None.

    Examples: `COCO_val2014_000000391895.jpg`, or `000000391895.jpg` in the release of 2017.
    """
    match = _NUMBER.search(file)
    return int(match[1]) if match else None


def _images(raw: Path) -> Iterator[Image]:
    """Yield the images from whichever form of the captions is under `raw`."""
    labels = read_object(raw / LABELS) if (raw / LABELS).is_file() else {}
    if (raw / KARPATHY).is_file():
        images = _from_karpathy(raw / KARPATHY)
    elif (raw / PRECOMP).is_dir():
        images = _from_precomp(raw / PRECOMP)
    else:
        files, only_present = files_below(raw / CAPTIONS), read_image_folder(raw).only_present
        images = read_annotations(files, raw / IDS, only_present)
    for image in images:
        yield replace(image, labels=tuple(labels.get(str(image.id), ())))


def _from_karpathy(path: Path) -> Iterator[Image]:
    for image in read_by_split(path, identified=True):
        if image.id is None:
            where = image.captions[0].where.removesuffix(".sentences[0]")
            raise DataError(
                f"{where}: expected 'cocoid'. Check that the file is Karpathy's for COCO"
            )
        lines = image.captions[:CAPTIONS_PER_IMAGE]
        for line in lines:
            if line.id is None:
                raise DataError(f"{line.where}: expected 'sentid'")
        yield replace(image, captions=lines)


def _from_precomp(folder: Path) -> Iterator[Image]:
    for image in read_precomp(folder):
        number, name = coco_id(image.file), str(image.id)
        image_id = name if number is None else str(number)
        file = image.file or (f"{int(name):012}.jpg" if name.isdecimal() else f"{name}.jpg")
        lines = [line._replace(id=f"{image_id}#{k}") for k, line in enumerate(image.captions)]
        yield replace(image, file=file, id=image_id, captions=lines)
