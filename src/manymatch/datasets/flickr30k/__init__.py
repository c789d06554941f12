"""Flickr30K (Young et al. 2014) in Karpathy's splits: 29,000 / 1,014 / 1,000 photographs, five
captions each.

An image's id is its file's stem; a caption's id is `FILE.jpg#k`. A `*_precomp` folder without
`id_mapping.json` does not tell files: an image is then called by the number in its `*_ids.txt`,
Karpathy's `imgid`, or by its place. Images stand in the order of Karpathy's file, which is SCAN's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from manymatch.datasets.base import Caption, Relevance
from manymatch.datasets.flickr30k.fetch import KARPATHY, MULTI30K, PRECOMP, fetch
from manymatch.datasets.flickr30k.multi30k import read_multi30k
from manymatch.datasets.flickr30k.settings import Flickr30kSettings
from manymatch.datasets.image_files import Pictures
from manymatch.datasets.karpathy import by_split
from manymatch.datasets.precomp import read_precomp

Image = tuple[str, str, Sequence[tuple[str, str]]]
"""File, split, captions (text and where it stands)."""


class Flickr30k:
    """The dataset `flickr30k`; see `manymatch.datasets.base.Dataset`."""

    name = "flickr30k"

    def download(self, settings: Flickr30kSettings, raw: Path) -> None:
        """Put the texts under `raw`, and the images or a note of where they are."""
        fetch(settings, raw, self.name)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """The rows in Karpathy's order, training images first."""
        pictures = Pictures(raw, lambda name: name)
        for name, split, lines in _form(raw)(raw):
            file = pictures.file(name)
            if file is None:
                continue
            stem = PurePosixPath(name).stem
            for number, (text, where) in enumerate(lines):
                caption_id = f"{name}#{number}"
                yield Caption(stem, caption_id, split, " ".join(text.split()), file, where=where)
        pictures.tell_left_out()

    def relevance(self, raw: Path) -> Relevance | None:
        """None: nobody judged further pairs."""
        return None


def _form(raw: Path) -> Callable[[Path], Iterator[Image]]:
    """The reader of the form in which the captions under `raw` are."""
    if (raw / KARPATHY).is_file():
        return _from_karpathy
    return _from_precomp if (raw / PRECOMP).is_dir() else _from_multi30k


def _from_karpathy(raw: Path) -> Iterator[Image]:
    for entry in by_split(raw / KARPATHY):
        yield entry.file, entry.split, [(line.text, line.where) for line in entry.sentences]


def _from_multi30k(raw: Path) -> Iterator[Image]:
    for image in read_multi30k(raw / MULTI30K):
        yield image.file, image.split, image.captions


def _from_precomp(raw: Path) -> Iterator[Image]:
    for image in read_precomp(raw / PRECOMP):
        name = image.id or f"{image.split}_{image.number}"
        yield image.file or f"{name}.jpg", image.split, image.captions
