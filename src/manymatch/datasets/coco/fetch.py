"""Bring the files of COCO together under one folder, by the names in `names`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

from manymatch.datasets.coco.annotations import ID_FILES, files_below, read_categories
from manymatch.datasets.coco.names import CAPTIONS, IDS, KARPATHY, LABELS, PRECOMP, USUAL
from manymatch.datasets.coco.settings import CocoSettings
from manymatch.datasets.image_files import settle_pictures
from manymatch.datasets.karpathy import copy_karpathy, holds_karpathy, whole_karpathy
from manymatch.datasets.precomp import copy_precomp, is_precomp
from manymatch.fetching.archives import extract, is_archive
from manymatch.fetching.completeness import whole_archive, whole_json, whole_members
from manymatch.fetching.copying import copy_file
from manymatch.fetching.gather import Gatherer
from manymatch.fetching.transfer import Check
from manymatch.system.errors import SourceError
from manymatch.system.files import remove, write_json
from manymatch.system.progress import say

_IMAGES = (
    "set it to train2014.zip and val2014.zip or to the folder they were unpacked to, or set "
    "'without_images: true' where published features are used"
)


def fetch(settings: CocoSettings, raw: Path, name: str) -> None:
    """Fill `raw`; the texts come first, so that a fault in them is told before the long download.

    Raises `SourceError` or `ConfigError` for what is missing or unsound.
    """
    given = {key: getattr(settings, key) for key in USUAL}
    gatherer = Gatherer(name, raw, settings.folder, USUAL, given)
    _fetch_captions(gatherer, raw)
    if gatherer.has("instances"):
        _fetch_categories(gatherer, raw)
    images = None if settings.without_images else gatherer.all("images", _IMAGES, whole_archive)
    settle_pictures(images, raw, settings.only_present)


def _fetch_captions(gatherer: Gatherer, raw: Path) -> None:
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
        _fetch_ids(gatherer.one("caption_ids"), raw / IDS)
        _fetch_annotations(sources, "captions", raw / CAPTIONS)


def _fetch_ids(source: Path, target: Path) -> None:
    """`source`: the folder of the arrays, or one of them."""
    target.mkdir()
    for file in ID_FILES:
        path = (source if source.is_dir() else source.parent) / file
        if not path.is_file():
            raise SourceError(f"{path}: no such file; all of {', '.join(ID_FILES)} are needed")
        copy_file(path, target / file)


def _fetch_annotations(sources: list[Path], kind: str, target: Path) -> None:
    """The files `KIND_*.json` of files and archives below the folder `target`: a folder for each
    source, for two may be called alike."""
    target.mkdir()
    for number, source in enumerate(sources):
        place = target / str(number)
        if is_archive(source):
            extract(source, place, _annotations(kind))
        else:
            place.mkdir()
            copy_file(source, place / source.name)
    if not files_below(target):
        raise SourceError(f"{sources[0]}: no {kind}_*.json in it")


def _annotations(kind: str) -> Callable[[str], bool]:
    return lambda name: PurePosixPath(name).match(f"{kind}_*.json")


def _whole_annotations(kind: str) -> Check:
    lists = ("images", "annotations") if kind == "captions" else ("annotations",)
    return whole_members(_annotations(kind), whole_json(*lists))


def _fetch_categories(gatherer: Gatherer, raw: Path) -> None:
    """Keep what is used of the instances: the categories of each image.

    Who has the captions is not held up by instances that the web does not give.
    """
    try:
        sources = gatherer.all("instances", check=_whole_annotations("instances"))
    except SourceError as error:
        if gatherer.is_local("instances") or not gatherer.is_local("captions"):
            raise
        say(f"{error}; going on without labels of the images: PMRP will not be computed")
        return
    files = raw / "instances"
    _fetch_annotations(sources, "instances", files)
    write_json(raw / LABELS, read_categories(files_below(files)))
    remove(files)
