"""Bring the files of Flickr8k together under one folder, by the names in `names`."""

from __future__ import annotations

from pathlib import Path

from manymatch.datasets.flickr8k.names import (
    CROWD,
    EXPERT,
    IMAGES,
    KARPATHY,
    LISTS,
    TOKENS,
    USUAL_IMAGES,
)
from manymatch.datasets.flickr8k.settings import Flickr8kSettings
from manymatch.datasets.image_files import copy_pictures, unpack_pictures
from manymatch.fetching.completeness import whole_archive
from manymatch.fetching.copying import copy_file, copy_named
from manymatch.fetching.gather import Gatherer, Usual

_JUDGMENTS = {"expert": EXPERT, "crowd": CROWD}
_LISTS = {f"{split}_list": file for split, file in LISTS.items()}
"""Setting -> name under the raw folder."""
USUAL: Usual = {
    "images": USUAL_IMAGES,
    "captions": (TOKENS, KARPATHY),
    **{key: (file,) for key, file in (_LISTS | _JUDGMENTS).items()},
}


def fetch(settings: Flickr8kSettings, raw: Path, name: str) -> None:
    """Fill `raw`. Raises `SourceError` or `ConfigError` for what is missing or unsound.

    Text files come first: they are small, and a fault in them is told before the long download.
    """
    given = {key: getattr(settings, key) for key in USUAL}
    gatherer = Gatherer(name, raw, settings.folder, USUAL, given, _tells_splits)
    _fetch_captions(gatherer, raw)
    copy_named(gatherer, _JUDGMENTS, raw, optional=_JUDGMENTS)
    _fetch_images(gatherer.one("images", check=whole_archive), raw)


def _tells_splits(path: Path) -> bool:
    """Without the lists beside it the token file says nothing of splits."""
    return path.name != TOKENS or all((path.parent / file).exists() for file in LISTS.values())


def _fetch_captions(gatherer: Gatherer, raw: Path) -> None:
    captions = gatherer.one("captions")
    if _is_json(captions):
        copy_file(captions, raw / KARPATHY)
        return
    copy_file(captions, raw / TOKENS)
    copy_named(gatherer, _LISTS, raw)


def _is_json(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def _fetch_images(source: Path, raw: Path) -> None:
    """Pictures into `raw/images`, flat, whatever folders they lie in.

    Those of a folder are copied, not linked: `raw` goes into DVC's cache, which takes away the
    right to write from what it holds, and the user's own files are not ours to change.
    """
    images = raw / IMAGES
    if source.is_dir():
        copy_pictures(source, images)
    else:
        unpack_pictures(source, images)
