"""Flickr30K (Young et al. 2014) in Karpathy's splits: 29,000 / 1,014 / 1,000 photographs with five
captions each.

An image's id is the stem of its file name, a caption's id is `FILE.jpg#k`. A `*_precomp` folder
without `id_mapping.json` has no file names: an image is then called by the number in `*_ids.txt`,
which is Karpathy's `imgid`, or by its split and number. Images are in the order of Karpathy's file,
which is also SCAN's order.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from manymatch.datasets.base import Caption
from manymatch.datasets.fetching import gather
from manymatch.datasets.fetching.archives import whole_archive
from manymatch.datasets.fetching.disk import copy_file
from manymatch.datasets.fetching.sources import Source
from manymatch.datasets.image_files import Image, Line, caption_rows, settle_images
from manymatch.datasets.karpathy import PUBLISHED, copy_karpathy, read_by_split, whole_karpathy
from manymatch.datasets.precomp import copy_precomp, has_all_splits, is_precomp, read_precomp
from manymatch.util.errors import DataError
from manymatch.util.text_lines import numbered_lines

KARPATHY = "dataset_flickr30k.json"
PRECOMP = "precomp"
MULTI30K = "multi30k"

_ADVICE = (
    "the images are given out after a form: fill in the form that "
    "https://shannon.cs.illinois.edu/DenotationGraph/ links to, and set images to the "
    "flickr30k-images.tar.gz that you receive, or to its folder; or set 'without_images: true' "
    "to use published features"
)


class Flickr30kSettings(gather.ImageSettings):
    """`sources.flickr30k` of params.yaml."""

    images: gather.Sources | None = None
    """An archive, or a folder, which is used in place. The images are given out after a form."""
    captions: Source | None = PUBLISHED
    """Karpathy's `dataset_flickr30k.json` or a zip archive with it, a `*_precomp` folder, or
    Multi30K's folder of task 2."""


class Flickr30k(gather.PublishedDataset):
    """Files have the names in the releases, in VSE-infinity's or in SCAN's data."""

    settings_model = Flickr30kSettings
    usual: ClassVar[gather.Usual] = {
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
    advice: ClassVar[dict[str, str]] = {"images": _ADVICE}

    def has_all(self, path: Path) -> bool:
        return has_all_splits(path)

    def collect(self, gatherer: gather.Gatherer, settings: Flickr30kSettings, raw: Path) -> None:
        """Put the captions under `raw`, and the images or a record of where they are."""
        source = gatherer.one("captions", whole_karpathy(KARPATHY))
        if is_precomp(source):
            copy_precomp(source, raw / PRECOMP)
        elif (source / "train_images.txt").is_file():
            copy_multi30k(source, raw / MULTI30K)
        else:
            copy_karpathy(source, KARPATHY, raw / KARPATHY)
        images = None if settings.without_images else gatherer.each("images", whole_archive)
        settle_images(images, raw, settings.only_present)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """Yield the rows in Karpathy's order, training images first."""
        return caption_rows(raw, _images(raw))


def _images(raw: Path) -> Iterator[Image]:
    """Yield the images from whichever form of the captions is under `raw`."""
    if (raw / KARPATHY).is_file():
        yield from read_by_split(raw / KARPATHY)
    elif (raw / PRECOMP).is_dir():
        for image in read_precomp(raw / PRECOMP):
            yield replace(image, file=image.file or f"{image.id}.jpg", id=None)
    else:
        yield from read_multi30k(raw / MULTI30K)


_SPLITS = {"train": "train", "validation": "val", "test": "test_2016"}
_CAPTIONS = range(1, 6)


def copy_multi30k(source: Path, target: Path) -> None:
    """Copy the lists and captions of the three splits."""
    target.mkdir()
    for name in _SPLITS.values():
        copy_file(source / f"{name}_images.txt", target / f"{name}_images.txt")
        for number in _CAPTIONS:
            path = _caption_file(source, name, number)
            copy_file(path, target / path.name)


def read_multi30k(folder: Path) -> Iterator[Image]:
    """Yield the images of each split in the order of its list, which is Karpathy's and SCAN's.

    The English captions of Multi30K's task 2 (Elliott et al. 2016) are all captions of Flickr30K: a
    list of image files for each split, and for each caption of an image one file, whose lines
    correspond to those of the list.
    """
    for split, name in _SPLITS.items():
        files = list(numbered_lines(folder / f"{name}_images.txt"))
        columns = []
        for path in (_caption_file(folder, name, number) for number in _CAPTIONS):
            columns.append([Line(text, f"{path}:{n}") for n, text in numbered_lines(path)])
            if len(columns[-1]) != len(files):
                counts = f"{len(columns[-1])} captions, but the list has {len(files)} images"
                raise DataError(f"{path}: {counts}")
        for (_, file), *captions in zip(files, *columns, strict=True):
            yield Image(file.strip(), split, captions)


def _caption_file(folder: Path, name: str, number: int) -> Path:
    packed = folder / f"{name}.{number}.en.gz"
    return packed if packed.is_file() else folder / f"{name}.{number}.en"
