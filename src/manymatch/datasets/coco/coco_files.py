"""The files of COCO: where they are, and their copies under the raw folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

from manymatch.datasets.coco.annotations import ID_FILES, files_below, read_categories
from manymatch.datasets.image_files import settle_images
from manymatch.datasets.karpathy import copy_karpathy, holds_karpathy, whole_karpathy
from manymatch.datasets.precomp import copy_precomp, is_precomp
from manymatch.datasets.source_settings import ImageSettings
from manymatch.fetching.archives import extract, is_archive
from manymatch.fetching.completeness import whole_archive, whole_json, whole_members
from manymatch.fetching.copying import copy_file
from manymatch.fetching.gather import Gatherer, Sources, Usual
from manymatch.fetching.sources import Source
from manymatch.fetching.transfer import Check
from manymatch.system.errors import SourceError
from manymatch.system.files import remove, write_json
from manymatch.system.progress import say

KARPATHY = "dataset_coco.json"
CAPTIONS = "captions"
IDS = "ids"
PRECOMP = "precomp"
LABELS = "categories.json"

USUAL: Usual = {
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
    "caption_ids": ("coco_test_ids.npy", "ids/coco_test_ids.npy", "annotations/coco_test_ids.npy"),
    "instances": (
        "instances_*20??.json",
        "annotations/instances_*20??.json",
        "annotations/annotations/instances_*20??.json",
        "annotations_trainval2014.zip",
    ),
}
"""The names in the releases, and in the data of PCME, VSE-infinity and SCAN."""

_ADVICE = (
    "set it to train2014.zip and val2014.zip or to the folder with the unpacked files, or set "
    "'without_images: true' to use published features"
)


class CocoSettings(ImageSettings):
    """`sources.coco` of params.yaml.

    `only_present` also leaves out captions that are in none of the caption files.
    """

    images: Sources | None = None
    """Archives, or one folder, which is used in place."""
    captions: Sources | None = None
    """Karpathy's `dataset_coco.json` or a zip archive with it; or a `*_precomp` folder; or, with
    `caption_ids`, COCO's own `captions_*.json` or a zip archive with them."""
    caption_ids: Source | None = None
    """A folder with `coco_{train,restval,dev,test}_ids.npy`, the caption ids of Karpathy's splits,
    as PVSE and PCME have them."""
    instances: Sources | None = None
    """`instances_*.json` or a zip archive with them: the categories that PMRP compares."""


def collect(settings: CocoSettings, raw: Path) -> None:
    """Put the captions under `raw`, and the images or a record of where they are.

    The captions come first, so that a fault in them is reported before the long download.

    Raises:
        SourceError, ConfigError: a source is missing or damaged.
    """
    gatherer = settings.gatherer("coco", raw, USUAL)
    _collect_captions(gatherer, raw)
    if gatherer.has("instances"):
        _collect_categories(gatherer, raw)
    images = None if settings.without_images else gatherer.all("images", _ADVICE, whole_archive)
    settle_images(images, raw, settings.only_present)


def _collect_captions(gatherer: Gatherer, raw: Path) -> None:
    def check(path: Path) -> None:
        (whole_karpathy(KARPATHY) if is_karpathy(path) else _whole_annotations("captions"))(path)

    def is_karpathy(path: Path) -> bool:
        return not gatherer.has("caption_ids") or holds_karpathy(path, KARPATHY)

    sources = gatherer.all("captions", check=check)
    if is_precomp(sources[0]):
        copy_precomp(sources[0], raw / PRECOMP)
    elif is_karpathy(sources[0]):
        copy_karpathy(sources[0], KARPATHY, raw / KARPATHY)
    else:
        _copy_ids(gatherer.one("caption_ids"), raw / IDS)
        _copy_annotations(sources, "captions", raw / CAPTIONS)


def _copy_ids(source: Path, target: Path) -> None:
    """Copy the arrays. `source` is their folder, or one of them."""
    target.mkdir()
    for file in ID_FILES:
        path = (source if source.is_dir() else source.parent) / file
        if not path.is_file():
            raise SourceError(f"{path}: no such file; all of {', '.join(ID_FILES)} are needed")
        copy_file(path, target / file)


def _copy_annotations(sources: list[Path], kind: str, target: Path) -> None:
    """Copy the files `KIND_*.json`, given as files or archives, below the folder `target`.

    Each source gets a folder of its own, because two files may have the same name.
    """
    target.mkdir()
    for number, source in enumerate(sources):
        folder = target / str(number)
        if is_archive(source):
            extract(source, folder, _is_annotations(kind))
        else:
            folder.mkdir()
            copy_file(source, folder / source.name)
    if not files_below(target):
        raise SourceError(f"{sources[0]}: no {kind}_*.json in it")


def _is_annotations(kind: str) -> Callable[[str], bool]:
    return lambda name: PurePosixPath(name).match(f"{kind}_*.json")


def _whole_annotations(kind: str) -> Check:
    lists = ("images", "annotations") if kind == "captions" else ("annotations",)
    return whole_members(_is_annotations(kind), whole_json(*lists))


def _collect_categories(gatherer: Gatherer, raw: Path) -> None:
    """Keep the categories of each image, which is all that is used of the instances.

    If the captions are on this machine and the web does not provide the instances, the dataset is
    collected without labels.
    """
    try:
        sources = gatherer.all("instances", check=_whole_annotations("instances"))
    except SourceError as error:
        if gatherer.is_local("instances") or not gatherer.is_local("captions"):
            raise
        say(f"{error}; going on without labels of the images: PMRP will not be computed")
        return
    files = raw / "instances"
    _copy_annotations(sources, "instances", files)
    write_json(raw / LABELS, read_categories(files_below(files)))
    remove(files)
