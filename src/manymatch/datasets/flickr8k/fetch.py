"""Bring the files of Flickr8k together under one folder, by the names in `names`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from manymatch.datasets.copying import copy_file
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
from manymatch.datasets.pictures import copy_pictures, unpack_pictures
from manymatch.datasets.sources import Source, downloads, local_path, obtain
from manymatch.datasets.transfer import Check
from manymatch.datasets.whole import whole_archive
from manymatch.errors import ConfigError, SourceError


def fetch(settings: Flickr8kSettings, raw: Path, name: str) -> None:
    """Fill `raw`. Raises `SourceError` or `ConfigError` for what is missing or unsound.

    Text files come first: they are small, and a fault in them is told before the long download.
    """
    sources = _in_folder(settings.folder) if settings.folder is not None else {}
    sources |= {key: value for key, value in settings if isinstance(value, Source)}
    waiting = downloads(raw, name)

    def get(key: str, check: Check | None = None) -> Path:
        if key not in sources:
            raise ConfigError(f"params.yaml: sources.{name}: {_missing(key, settings)}")
        return obtain(sources[key], f"{name} {key}", waiting / key, check)

    _fetch_captions(get, raw)
    for key, target in (("expert", EXPERT), ("crowd", CROWD)):
        if key in sources:
            copy_file(get(key), raw / target)
    _fetch_images(get("images", whole_archive), raw)


def _missing(key: str, settings: Flickr8kSettings) -> str:
    where = f"not found under its usual name in {settings.folder}; " if settings.folder else ""
    return f"'{key}': {where}set it to where the file is"


def _in_folder(folder: str) -> dict[str, Source]:
    """What of the dataset lies in `folder` under its usual name."""
    path = local_path(folder)
    if path is None or not path.is_dir():
        raise SourceError(f"params.yaml: sources.flickr8k.folder: {folder} is not a folder here")
    lists = {f"{split}_list": (file,) for split, file in LISTS.items()}
    complete = all((path / file).exists() for file in LISTS.values())
    usual = {
        "images": USUAL_IMAGES,
        # Without its lists the token file says nothing of splits.
        "captions": (TOKENS, KARPATHY) if complete else (KARPATHY, TOKENS),
        "expert": (EXPERT,),
        "crowd": (CROWD,),
        **lists,
    }
    found = {
        key: next((path / file for file in files if (path / file).exists()), None)
        for key, files in usual.items()
    }
    return {key: Source(url=str(file)) for key, file in found.items() if file is not None}


def _fetch_captions(get: Callable[[str], Path], raw: Path) -> None:
    captions = get("captions")
    if _is_json(captions):
        copy_file(captions, raw / KARPATHY)
        return
    copy_file(captions, raw / TOKENS)
    for split, file in LISTS.items():
        copy_file(get(f"{split}_list"), raw / file)


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
