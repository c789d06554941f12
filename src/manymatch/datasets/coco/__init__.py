"""COCO captions (Chen et al. 2015) in Karpathy's splits: 113,287 training images (`restval` among
them), 5,000 for validation, 5,000 for test, five captions each: where Karpathy's file has more, the
first five, which the arrays of caption ids and SCAN's files hold.

An image's id is COCO's, a caption's id that of its annotation: what ECCV Caption and CxC name.
(A `*_precomp` folder does not tell the annotations: a caption is then IMAGE#k.) Labels are the
categories of the image's instances. Images stand in the order of Karpathy's file, so that the
consecutive thousands of the test split are the five folds of the 1K protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from manymatch.datasets.base import Caption, Relevance
from manymatch.datasets.coco.annotations import files_below, read_annotations
from manymatch.datasets.coco.fetch import fetch
from manymatch.datasets.coco.names import CAPTIONS, IDS, KARPATHY, LABELS, PRECOMP, coco_id
from manymatch.datasets.coco.settings import CocoSettings
from manymatch.datasets.image_files import Pictures
from manymatch.datasets.image_folder import read_place
from manymatch.datasets.karpathy import by_split
from manymatch.datasets.precomp import CAPTIONS_PER_IMAGE, read_precomp
from manymatch.foreign.json_file import read_object
from manymatch.system.errors import DataError

Line = tuple[str, str, str]
"""Id of the caption, its text, where it stands."""
Image = tuple[str, str, str, list[Line]]
"""Id, split, file name, captions."""


class Coco:
    """The dataset `coco`; see `manymatch.datasets.base.Dataset`."""

    name = "coco"

    def download(self, settings: CocoSettings, raw: Path) -> None:
        """Put the texts under `raw`, and the images or a note of where they are."""
        fetch(settings, raw, self.name)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """The rows in the order of Karpathy's file or of SCAN's, training images first."""
        categories = read_object(raw / LABELS) if (raw / LABELS).is_file() else {}
        pictures = Pictures(raw, coco_id)
        for image_id, split, name, lines in _form(raw)(raw):
            file = pictures.file(name)
            if file is None:
                continue
            labels = tuple(categories.get(image_id, ()))
            for caption_id, text, where in lines:
                yield Caption(
                    image_id, caption_id, split, " ".join(text.split()), file, labels, where
                )
        pictures.tell_left_out()

    def relevance(self, raw: Path) -> Relevance | None:
        """None: the extra pairs of ECCV Caption and CxC belong to their protocols."""
        return None


def _form(raw: Path) -> Callable[[Path], Iterator[Image]]:
    """The reader of the form in which the captions under `raw` are."""
    if (raw / KARPATHY).is_file():
        return _from_karpathy
    return _from_precomp if (raw / PRECOMP).is_dir() else _from_annotations


def _from_karpathy(raw: Path) -> Iterator[Image]:
    for entry in by_split(raw / KARPATHY):
        if entry.cocoid is None:
            raise DataError(f"{entry.where}: expected 'cocoid'; not the file of COCO?")
        lines = []
        for line in entry.sentences[:CAPTIONS_PER_IMAGE]:
            if line.sentid is None:
                raise DataError(f"{line.where}: expected 'sentid'")
            lines.append((str(line.sentid), line.text, line.where))
        yield str(entry.cocoid), entry.split, entry.file, lines


def _from_annotations(raw: Path) -> Iterator[Image]:
    files = files_below(raw / CAPTIONS)
    for image in read_annotations(files, raw / IDS, read_place(raw).only_present):
        lines = [(str(line.id), line.text, line.where) for line in image.captions]
        yield str(image.id), image.split, image.file, lines


def _from_precomp(raw: Path) -> Iterator[Image]:
    for image in read_precomp(raw / PRECOMP):
        number = coco_id(image.file) if image.file else None
        key = image.id or f"{image.split}_{image.number}"
        image_id = key if number is None else str(number)
        file = image.file or (f"{int(key):012}.jpg" if key.isdecimal() else f"{key}.jpg")
        lines = [(f"{image_id}#{k}", *line) for k, line in enumerate(image.captions)]
        yield image_id, image.split, file, lines
