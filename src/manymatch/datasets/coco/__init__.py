"""COCO captions (Chen et al. 2015) in Karpathy's splits: 113,287 training images (with `restval`),
5,000 validation and 5,000 test images with five captions each.

If Karpathy's file has more than five captions of an image, the first five are used. The arrays of
caption ids and SCAN's files contain the same five captions. The ids of images and captions are
COCO's own, as in ECCV Caption and CxC. A `*_precomp` folder has no caption ids: a caption is then
IMAGE#k. Labels are the categories of the image's instances. Images are in the order of Karpathy's
file, so that consecutive thousands of the test split are the five folds of the 1K protocol.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import ClassVar

from manymatch.datasets import karpathy
from manymatch.datasets.base import Caption
from manymatch.datasets.coco import annotations
from manymatch.datasets.fetching import archives, gather
from manymatch.datasets.fetching.disk import copy_file
from manymatch.datasets.fetching.sources import Source
from manymatch.datasets.fetching.transfer import Check
from manymatch.datasets.image_files import Image, caption_rows, read_image_folder, settle_images
from manymatch.datasets.precomp import CAPTIONS_PER_IMAGE, copy_precomp, is_precomp, read_precomp
from manymatch.util.errors import DataError, SourceError
from manymatch.util.files import remove, write_json
from manymatch.util.json_file import read_object
from manymatch.util.progress import say

KARPATHY = "dataset_coco.json"
CAPTIONS = "captions"
IDS = "ids"
PRECOMP = "precomp"
LABELS = "categories.json"

_HOSTS = "http://images.cocodataset.org", "https://s3.amazonaws.com/images.cocodataset.org"
_COPY = "https://huggingface.co/datasets/GAIA-URJC/COCO_2014/resolve/main"


def _published(path: str, size: int, sha256: str) -> Source:
    first, second = (f"{host}/{path}" for host in _HOSTS)
    mirrors = (second, f"{_COPY}/{PurePosixPath(path).name}")
    return Source(url=first, mirrors=mirrors, size=size, sha256=sha256)


class CocoSettings(gather.ImageSettings):
    """`sources.coco` of params.yaml.

    `only_present` also leaves out captions that are in none of the caption files.
    """

    images: gather.Sources | None = (
        _published(
            "zips/train2014.zip",
            13510573713,
            "ede4087e640bddba550e090eae701092534b554b42b05ac33f0300b984b31775",
        ),
        _published(
            "zips/val2014.zip",
            6645013297,
            "fe9be816052049c34717e077d9e34aa60814a55679f804cd043e3cbee3b9fde0",
        ),
    )
    """Archives, or one folder, which is used in place."""
    captions: gather.Sources | None = (karpathy.PUBLISHED,)
    """Karpathy's `dataset_coco.json` or a zip archive with it; or a `*_precomp` folder; or, with
    `caption_ids`, COCO's own `captions_*.json` or a zip archive with them."""
    caption_ids: Source | None = None
    """A folder with `coco_{train,restval,dev,test}_ids.npy`, the caption ids of Karpathy's splits,
    as PVSE and PCME have them."""
    instances: gather.Sources | None = (
        _published(
            "annotations/annotations_trainval2014.zip",
            252872794,
            "031296bbc80c45a1d1f76bf9a90ead27e94e99ec629208449507a4917a3bf009",
        ),
    )
    """`instances_*.json` or a zip archive with them: the categories that PMRP compares."""


class Coco(gather.PublishedDataset):
    """Files have the names in the releases, or in the data of PCME, VSE-infinity or SCAN."""

    settings_model = CocoSettings
    may_lack = ("caption_ids", "instances")
    usual: ClassVar[gather.Usual] = {
        "images": (
            "images",
            "trainval35k",
            "val2014/..",  # the folder itself, if it holds train2014 and val2014
            ("train2014.zip", "val2014.zip"),
        ),
        "captions": (
            KARPATHY,
            "caption_datasets.zip",
            "coco.zip",
            "captions_*20??.json",
            "annotations/captions_*20??.json",
            "annotations/annotations/captions_*20??.json",
            "annotations_trainval2014.zip",
            "precomp",
            "coco_precomp",
        ),
        "caption_ids": tuple(
            f"{folder}coco_test_ids.npy" for folder in ("", "ids/", "annotations/")
        ),
        "instances": (
            "instances_*20??.json",
            "annotations/instances_*20??.json",
            "annotations/annotations/instances_*20??.json",
            "annotations_trainval2014.zip",
        ),
    }
    advice: ClassVar[dict[str, str]] = {
        "images": "set it to train2014.zip and val2014.zip or to the folder with the unpacked "
        "files, or set 'without_images: true' to use published features"
    }

    def collect(self, gatherer: gather.Gatherer, settings: CocoSettings, raw: Path) -> None:
        """Put the captions under `raw`, with the images or a record of their place.

        The captions come first, so that a fault in them is reported before the long download.
        """
        _collect_captions(gatherer, raw)
        if gatherer.has("instances"):
            _collect_categories(gatherer, raw)
        images = (
            None if settings.without_images else gatherer.each("images", archives.whole_archive)
        )
        settle_images(images, raw, settings.only_present)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """Yield the rows in the order of Karpathy's file or of SCAN's, training images first."""
        return caption_rows(raw, _images(raw), key=annotations.coco_id)


def _images(raw: Path) -> Iterator[Image]:
    """Yield the images from whichever form of the captions is under `raw`."""
    labels = read_object(raw / LABELS) if (raw / LABELS).is_file() else {}
    if (raw / KARPATHY).is_file():
        images = _from_karpathy(raw / KARPATHY)
    elif (raw / PRECOMP).is_dir():
        images = _from_precomp(raw / PRECOMP)
    else:
        files = annotations.files_below(raw / CAPTIONS)
        only_present = read_image_folder(raw).only_present
        images = annotations.read_annotations(files, raw / IDS, only_present)
    labelled = not labels
    for image in images:
        numbers = tuple(labels.get(str(image.id), ()))
        labelled |= bool(numbers)
        yield replace(image, labels=numbers)
    if not labelled:
        raise DataError(
            f"{raw / LABELS}: no image with captions has categories. Set 'instances' to the file "
            "of the same images, or to null"
        )


def _from_karpathy(path: Path) -> Iterator[Image]:
    for image in karpathy.read_by_split(path, identified=True):
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
        number, name = annotations.coco_id(image.file), str(image.id)
        image_id = name if number is None else str(number)
        file = image.file or (f"{int(name):012}.jpg" if name.isdecimal() else f"{name}.jpg")
        lines = [line._replace(id=f"{image_id}#{k}") for k, line in enumerate(image.captions)]
        yield replace(image, file=file, id=image_id, captions=lines)


def _collect_captions(gatherer: gather.Gatherer, raw: Path) -> None:
    def is_karpathy(path: Path) -> bool:
        return not gatherer.has("caption_ids") or karpathy.holds_karpathy(path, KARPATHY)

    def check(path: Path) -> None:
        if is_karpathy(path):
            karpathy.whole_karpathy(KARPATHY)(path)
        else:
            _whole_annotations("captions")(path)

    sources = list(gatherer.each("captions", check))
    if is_precomp(sources[0]):
        copy_precomp(sources[0], raw / PRECOMP)
    elif is_karpathy(sources[0]):
        karpathy.copy_karpathy(sources[0], KARPATHY, raw / KARPATHY)
    else:
        ids = gatherer.one("caption_ids")  # their folder, or one of them
        (raw / IDS).mkdir()
        for file in annotations.ID_FILES:
            copy_file((ids if ids.is_dir() else ids.parent) / file, raw / IDS / file)
        _copy_annotations(sources, "captions", raw / CAPTIONS)


def _copy_annotations(sources: list[Path], kind: str, target: Path) -> None:
    """Copy the files `KIND_*.json`, given as files or archives, to folders below `target`: two
    files may have the same name."""
    target.mkdir()
    for number, source in enumerate(sources):
        folder = target / str(number)
        if archives.is_archive(source):
            archives.extract(source, folder, _is_annotations(kind))
        else:
            folder.mkdir()
            copy_file(source, folder / source.name)
    if not annotations.files_below(target):
        raise SourceError(f"{sources[0]}: no {kind}_*.json in it")


def _is_annotations(kind: str) -> Callable[[str], bool]:
    return lambda name: PurePosixPath(name).match(f"{kind}_*.json")


def _whole_annotations(kind: str) -> Check:
    lists = ("images", "annotations") if kind == "captions" else ("annotations",)
    return archives.whole_members(_is_annotations(kind), archives.whole_json(*lists))


def _collect_categories(gatherer: gather.Gatherer, raw: Path) -> None:
    """Keep only the categories of each image. Nothing else of the instances is used.

    If the captions are on this machine and the web does not provide the instances, the data set is
    collected without labels.
    """
    try:
        sources = list(gatherer.each("instances", _whole_annotations("instances")))
    except SourceError as error:
        if gatherer.is_local("instances") or not gatherer.is_local("captions"):
            raise
        say(f"{error}; going on without labels of the images: PMRP will not be computed")
        return
    files = raw / "instances"
    _copy_annotations(sources, "instances", files)
    write_json(raw / LABELS, annotations.read_categories(annotations.files_below(files)))
    remove(files)
