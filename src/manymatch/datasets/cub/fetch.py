"""Bring the files of CUB together under one folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from manymatch.datasets.cub.settings import CubSettings
from manymatch.datasets.image_files import settle_pictures
from manymatch.fetching.archives import extract, is_archive
from manymatch.fetching.completeness import whole_archive
from manymatch.fetching.copying import copy_file, copy_named
from manymatch.fetching.gather import Gatherer, Usual
from manymatch.system.errors import SourceError
from manymatch.system.files import remove

TEXT = "text"
LISTS = {
    "train_classes": "trainvalclasses.txt",
    "validation_classes": "valclasses.txt",
    "test_classes": "testclasses.txt",
    "seen_test": "seen_test_images.txt",
}
"""Setting -> name under the raw folder."""
_OPTIONAL = "validation_classes"

USUAL: Usual = {
    "images": ("CUB_200_2011/images", "images", "CUB_200_2011.tgz", "cub_mini*.tar"),
    "captions": (
        "cvpr2016_cub/text_c10",
        "text_c10",
        "text",
        "cvpr2016_cub.tar.gz",
        "text.zip",
        "cub_mini*.tar",
    ),
    **{
        key: (LISTS[key], f"splits/{LISTS[key]}")
        for key in ("train_classes", "test_classes", "seen_test")
    },
}
"""What is looked for in a folder: the releases' own names, and those of the text-to-image field."""

_CLASS = re.compile(r"\d{3}\.[A-Za-z_]+")


def fetch(settings: CubSettings, raw: Path, name: str) -> None:
    """Fill `raw`; raises `SourceError` or `ConfigError` for what is missing or unsound."""
    given = {key: getattr(settings, key) for key in (*USUAL, _OPTIONAL)}
    gatherer = Gatherer(name, raw, settings.folder, USUAL, given)
    copy_named(gatherer, LISTS, raw, [_OPTIONAL])
    _fetch_texts(gatherer.one("captions", check=whole_archive), raw)
    advice = "set it to CUB_200_2011.tgz or the folder it was unpacked to"
    settle_pictures(gatherer.all("images", advice, whole_archive), raw, settings.only_present)


def _fetch_texts(source: Path, raw: Path) -> None:
    """The files CLASS/IMAGE.txt, whatever folders they lie in, as `raw/text/CLASS/IMAGE.txt`."""
    folder = source
    if not source.is_dir():
        if not is_archive(source):
            raise SourceError(f"{source}: neither a folder nor a whole tar, tar.gz or zip archive")
        folder = raw / "unpacked"
        extract(source, folder, lambda member: _is_text(PurePosixPath(member)))
    count = 0
    for path in _texts(folder):
        target = raw / TEXT / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            raise SourceError(f"{source}: captions of {path.parent.name}/{path.name} twice")
        copy_file(path, target)
        count += 1
    if not count:
        raise SourceError(f"{source}: no captions in it; expected files CLASS/IMAGE.txt")
    remove(raw / "unpacked")


def _texts(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.txt")):
        if _is_text(PurePosixPath(path.relative_to(folder.parent))):
            yield path


def _is_text(name: PurePosixPath) -> bool:
    return name.suffix == ".txt" and bool(_CLASS.fullmatch(name.parent.name))
