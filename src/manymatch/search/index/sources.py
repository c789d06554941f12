"""The kinds of sources by name, and the source that a path means."""

from __future__ import annotations

from pathlib import Path

from manymatch.search.index.items import CaptionFile, PictureFolder, Source
from manymatch.search.index.manifest import REMEDY
from manymatch.util.errors import ConfigError, DataError, SourceError

_SUFFIXES = {"store": (".h5", ".hdf5"), "captions": (".txt", ".txt.gz")}
_LIGHT = {source.kind: source for source in (PictureFolder, CaptionFile)}


def source_of(path: Path, split: str | None = None) -> Source:
    """The source at `path`: a folder of pictures, shards, a feature store, or a file of captions.

    Args:
        split: the only split of shards to index; None: all.

    Raises:
        SourceError: there is nothing at `path`, or a file of another kind.
        ConfigError: a `split` of a source that is not one of shards.
    """
    from manymatch.shards.index import INDEX

    shards = path.is_dir() and (path / INDEX).is_file()
    if split is not None and not shards:
        raise ConfigError(f"--split {split}: {path} has no splits, because only shards have.")
    if path.is_dir():
        return source_at(path, "shards" if shards else "folder", split)
    for kind, suffixes in _SUFFIXES.items():
        if path.name.endswith(suffixes) and path.exists():
            return source_at(path, kind)
    problem = "not a source that can be indexed" if path.exists() else "no such file or folder"
    raise SourceError(
        f"{path}: {problem}. Name a folder of pictures or of shards, a feature store "
        f"({' '.join(_SUFFIXES['store'])}), or a text file with one caption a line "
        f"({' '.join(_SUFFIXES['captions'])})."
    )


def source_at(path: Path, kind: str, split: str | None = None) -> Source:
    """The source of a `kind` at `path`.

    Raises:
        DataError: a manifest of another version names an unknown kind, or the source is damaged.
    """
    if kind in _LIGHT:
        return _LIGHT[kind](path)
    from manymatch.search.index import feature_sources  # torch takes a second to import

    if kind == "store":
        return feature_sources.StoreFile(path)
    if kind == "shards":
        return feature_sources.ShardFolder(path, split)
    raise DataError(f"{path}: an unknown kind of source, '{kind}'. {REMEDY}")
