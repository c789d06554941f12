"""Flickr30K (Young et al. 2014) in Karpathy's splits: 29,000 / 1,014 / 1,000 photographs with five
captions each.

An image's id is the stem of its file name, a caption's id is `FILE.jpg#k`. A `*_precomp` folder
without `id_mapping.json` has no file names: an image is then called by the number in `*_ids.txt`,
which is Karpathy's `imgid`, or by its split and number. Images are in the order of Karpathy's file,
which is also SCAN's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manymatch.datasets.base import Caption, Dataset
from manymatch.datasets.image_files import Image, Line, caption_rows, settle_images
from manymatch.datasets.karpathy import copy_karpathy, read_by_split, whole_karpathy
from manymatch.datasets.multi30k import copy_multi30k, is_multi30k, read_multi30k
from manymatch.datasets.precomp import copy_precomp, has_all_splits, is_precomp, read_precomp
from manymatch.datasets.source_settings import ImageSettings
from manymatch.fetching.completeness import whole_archive
from manymatch.fetching.gather import Sources, Usual
from manymatch.fetching.sources import Source

KARPATHY = "dataset_flickr30k.json"
PRECOMP = "precomp"
MULTI30K = "multi30k"

USUAL: Usual = {
    "images": ("flickr30k-images", "flickr30k_images", "images", "flickr30k-images.tar.gz"),
    "captions": (
        KARPATHY,
        "caption_datasets.zip",
        "flickr30k.zip",
        "precomp",
        "f30k_precomp",
        "multi30k_task2",
    ),
}
"""The names in the releases, in VSE-infinity's and in SCAN's data."""

_ADVICE = (
    "the images are given out after a form: fill in the form that "
    "https://shannon.cs.illinois.edu/DenotationGraph/ links to, and set images to the "
    "flickr30k-images.tar.gz that you receive, or to its folder; or set 'without_images: true' "
    "to use published features"
)


class Flickr30kSettings(ImageSettings):
    """`sources.flickr30k` of params.yaml."""

    images: Sources | None = None
    """An archive, or a folder, which is used in place."""
    captions: Source | None = None
    """Karpathy's `dataset_flickr30k.json` or a zip archive with it, a `*_precomp` folder, or
    Multi30K's folder of task 2."""


class Flickr30k(Dataset):
    settings_model = Flickr30kSettings

    def download(self, settings: Flickr30kSettings, raw: Path) -> None:
        """Put the captions under `raw`, and the images or a record of where they are."""
        gatherer = settings.gatherer("flickr30k", raw, USUAL, has_all=_has_all_splits)
        _copy_captions(gatherer.one("captions", check=whole_karpathy(KARPATHY)), raw)
        images = None if settings.without_images else gatherer.all("images", _ADVICE, whole_archive)
        settle_images(images, raw, settings.only_present)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """Yield the rows in Karpathy's order, training images first."""
        return caption_rows(raw, _images(raw))


def _has_all_splits(path: Path) -> bool:
    return not is_precomp(path) or has_all_splits(path)


def _copy_captions(source: Path, raw: Path) -> None:
    if is_precomp(source):
        copy_precomp(source, raw / PRECOMP)
    elif is_multi30k(source):
        copy_multi30k(source, raw / MULTI30K)
    else:
        copy_karpathy(source, KARPATHY, raw / KARPATHY)


def _images(raw: Path) -> Iterator[Image]:
    """Yield the images from whichever form of the captions is under `raw`."""
    if (raw / KARPATHY).is_file():
        for entry in read_by_split(raw / KARPATHY):
            lines = [Line(sentence.text, sentence.where) for sentence in entry.sentences]
            yield Image(entry.file, entry.split, lines)
    elif (raw / PRECOMP).is_dir():
        for image in read_precomp(raw / PRECOMP):
            name = image.id or f"{image.split}_{image.number}"
            yield Image(image.file or f"{name}.jpg", image.split, image.captions)
    else:
        yield from read_multi30k(raw / MULTI30K)
