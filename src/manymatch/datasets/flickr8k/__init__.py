"""Flickr8k (Hodosh, Young and Hockenmaier 2013): 8,000 photographs, five captions each, and
people's judgments of which captions fit which other images of the test split.

An image's id is its file's stem; a caption's id is what the judgments call it, `FILE.jpg#k`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from types import ModuleType

from manymatch.datasets.base import SPLITS, Caption, Relevance
from manymatch.datasets.flickr8k import fetch, judgments, karpathy, tokens
from manymatch.datasets.flickr8k.image import Image
from manymatch.datasets.flickr8k.names import IMAGES, KARPATHY
from manymatch.datasets.flickr8k.settings import Flickr8kSettings


class Flickr8k:
    """The dataset `flickr8k`; see `manymatch.datasets.base.Dataset`."""

    name = "flickr8k"

    def download(self, settings: Flickr8kSettings, raw: Path) -> None:
        """Put the images under `raw/images`, the text files beside them by their usual names."""
        fetch.fetch(settings, raw, self.name)

    def captions(self, raw: Path) -> Iterable[Caption]:
        """The 40,000 captions of the images in a split, ordered by split, file and number."""
        images = _form(raw).read(raw)
        # So ordered, both forms of the files give the same table.
        images.sort(key=lambda image: (SPLITS.index(image.split), image.file))
        return (row for image in images for row in _rows(image))

    def relevance(self, raw: Path) -> Relevance | None:
        """The pairs of the test split beyond the own ones that people judged true."""
        if not judgments.present(raw):
            return None
        pairs = judgments.true_pairs(raw, _form(raw).test_files(raw))
        return Relevance([(_image_id(file), caption) for file, caption in pairs], complete=False)


def _form(raw: Path) -> ModuleType:
    """The reader of the form in which the captions under `raw` are."""
    return karpathy if (raw / KARPATHY).exists() else tokens


def _rows(image: Image) -> Iterator[Caption]:
    for number, text, where in image.captions:
        yield Caption(
            image_id=_image_id(image.file),
            caption_id=f"{image.file}#{number}",
            split=image.split,
            caption=text.strip(),
            file=f"{IMAGES}/{image.file}",
            where=where,
        )


def _image_id(file: str) -> str:
    return PurePosixPath(file).stem
