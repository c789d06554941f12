"""Bring the files of Flickr30K together under one folder."""

from __future__ import annotations

from pathlib import Path

from manymatch.datasets.flickr30k.multi30k import copy_multi30k, is_multi30k
from manymatch.datasets.flickr30k.settings import Flickr30kSettings
from manymatch.datasets.image_files import settle_pictures
from manymatch.datasets.karpathy import copy_karpathy, whole_karpathy
from manymatch.datasets.precomp import copy_precomp, has_all_splits, is_precomp
from manymatch.fetching.completeness import whole_archive
from manymatch.fetching.gather import Gatherer, Usual

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
"""What is looked for in a folder: the releases' own names, VSE-infinity's, SCAN's."""

_IMAGES = (
    "its pictures are given out after a form: fill in the one that "
    "https://shannon.cs.illinois.edu/DenotationGraph/ links to, and set images to the "
    "flickr30k-images.tar.gz that you are sent, or to its folder; or set 'without_images: true' "
    "where published features are used"
)


def fetch(settings: Flickr30kSettings, raw: Path, name: str) -> None:
    """Fill `raw`; raises `SourceError` or `ConfigError` for what is missing or unsound."""
    given = {key: getattr(settings, key) for key in USUAL}
    gatherer = Gatherer(name, raw, settings.folder, USUAL, given, _has_all_splits)
    _fetch_captions(gatherer.one("captions", check=whole_karpathy(KARPATHY)), raw)
    images = None if settings.without_images else gatherer.all("images", _IMAGES, whole_archive)
    settle_pictures(images, raw, settings.only_present)


def _has_all_splits(path: Path) -> bool:
    return not is_precomp(path) or has_all_splits(path)


def _fetch_captions(source: Path, raw: Path) -> None:
    if is_precomp(source):
        copy_precomp(source, raw / PRECOMP)
    elif is_multi30k(source):
        copy_multi30k(source, raw / MULTI30K)
    else:
        copy_karpathy(source, KARPATHY, raw / KARPATHY)
