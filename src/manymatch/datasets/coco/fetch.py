"""Bring the files of COCO together under one folder, by the names in `names`."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from manymatch.datasets.archives import extract, is_archive
from manymatch.datasets.coco.annotations import ID_FILES, read_categories
from manymatch.datasets.coco.names import CAPTIONS, IDS, KARPATHY, LABELS, PRECOMP, USUAL
from manymatch.datasets.coco.settings import CocoSettings
from manymatch.datasets.copying import copy_file
from manymatch.datasets.gather import Gatherer
from manymatch.datasets.karpathy import copy_karpathy, holds_karpathy
from manymatch.datasets.pictures import settle_pictures
from manymatch.datasets.precomp import copy_precomp, is_precomp
from manymatch.errors import SourceError
from manymatch.files import remove, write_json

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
        _fetch_categories(gatherer.all("instances"), raw)
    images = None if settings.without_images else gatherer.all("images", _IMAGES)
    settle_pictures(images, raw, settings.only_present)


def _fetch_captions(gatherer: Gatherer, raw: Path) -> None:
    sources = gatherer.all("captions")
    if is_precomp(sources[0]):
        copy_precomp(sources[0], raw / PRECOMP)
    elif gatherer.has("caption_ids") and not holds_karpathy(sources[0], KARPATHY):
        _fetch_ids(gatherer.one("caption_ids"), raw / IDS)
        _fetch_annotations(sources, "captions", raw / CAPTIONS)
    else:
        copy_karpathy(sources[0], KARPATHY, raw / KARPATHY)


def _fetch_ids(source: Path, target: Path) -> None:
    """`source`: the folder of the arrays, or one of them."""
    target.mkdir()
    for file in ID_FILES:
        path = (source if source.is_dir() else source.parent) / file
        if not path.is_file():
            raise SourceError(f"{path}: no such file; all of {', '.join(ID_FILES)} are needed")
        copy_file(path, target / file)


def _fetch_annotations(sources: list[Path], kind: str, target: Path) -> None:
    """The files `KIND_*.json` of files and archives to the folder `target`."""
    target.mkdir()
    for source in sources:
        if is_archive(source):
            unpacked = target / "unpacked"
            extract(source, unpacked, lambda name: _is_annotation(PurePosixPath(name), kind))
            for path in sorted(unpacked.rglob("*.json")):
                path.rename(target / path.name)
            remove(unpacked)
        else:
            copy_file(source, target / source.name)
    if not any(target.iterdir()):
        raise SourceError(f"{sources[0]}: no {kind}_*.json in it")


def _is_annotation(name: PurePosixPath, kind: str) -> bool:
    return name.match(f"{kind}_*.json") and not name.name.startswith(".")


def _fetch_categories(sources: list[Path], raw: Path) -> None:
    """Keep what is used of the instances: the categories of each image."""
    files = raw / "instances"
    _fetch_annotations(sources, "instances", files)
    write_json(raw / LABELS, read_categories(sorted(files.iterdir())))
    remove(files)
