"""The files of a data set: set one by one in params.yaml, in a folder under their usual names, or
published on the web.

A path in params.yaml comes before the folder, and the folder before the web, so that nobody
downloads a file they have. If a setting names several files, only the missing ones are downloaded.
The published addresses are the defaults of the settings.
"""

import re
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from manymatch.config.strict import Strict
from manymatch.datasets.base import Dataset
from manymatch.datasets.fetching.disk import copy_file
from manymatch.datasets.fetching.sources import (
    Need,
    Source,
    downloads,
    file_name,
    local_path,
    needed,
    obtain,
)
from manymatch.datasets.fetching.transfer import Check
from manymatch.util.errors import ConfigError, SourceError

Sources = Annotated[
    tuple[Source, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str | Mapping) else value),
]
"""In params.yaml, one source or a list of sources."""

Usual = Mapping[str, Sequence[str | tuple[str, ...]]]
"""Setting -> file names in a folder: patterns, or tuples of names that must all exist. The first
choice that exists counts. A file without a usual name has no choices."""


class Gatherer:
    """Gets the files of a data set by the names of their settings. `raw`: the folder to fill."""

    def __init__(self, dataset: "PublishedDataset", settings: "SourceSettings", raw: Path) -> None:
        self._dataset, self._folder = dataset, settings.folder
        # ConceptualCaptions -> conceptual_captions, as in params.yaml
        self._name = name = re.sub(r"\B(?=[A-Z])", "_", type(dataset).__name__).lower()
        self._waiting = downloads(raw, name)
        self._sources: dict[str, Sequence[Source]] = {}
        path = None if settings.folder is None else local_path(settings.folder)
        if settings.folder is not None:
            if path is None or not path.is_dir():
                where = f"params.yaml: sources.{name}.folder"
                raise SourceError(f"{where}: {settings.folder} is not a folder here")
            self._search(path)
        for key in dataset.usual:
            value: Sequence[Source] | Source | None = getattr(settings, key)
            sources = (value,) if isinstance(value, Source) else value or ()
            if sources and (key not in self._sources or _is_local(sources)):
                self._sources[key] = [self._nearest(source, path, key) for source in sources]

    def _search(self, folder: Path) -> None:
        """Note the files of the folder that have their usual names."""
        for key, choices in self._dataset.usual.items():
            if hits := list(filter(None, (_found(folder, choice) for choice in choices))):
                best = max(hits, key=lambda hit: all(map(self._dataset.has_all, hit)))
                self._sources[key] = [Source(url=str(path)) for path in best]

    def _nearest(self, source: Source, folder: Path | None, key: str) -> Source:
        """The source, or the file of the same name in the folder, with the same checksum."""
        if folder is None or _is_local([source]):
            return source
        path = folder / file_name(source.url, f"{self._name} {key}")
        there = source.model_copy(update={"url": str(path), "mirrors": ()})
        return there if path.exists() else source

    def is_local(self, key: str) -> bool:
        """Whether the file of the setting `key` is on this machine."""
        return self.has(key) and _is_local(self._sources[key])

    def has(self, key: str) -> bool:
        """Whether the setting `key` has a source."""
        return key in self._sources

    def needs(self, optional: Collection[str] = ()) -> Iterator[Need]:
        """What is not on this machine, the images first. `optional`: settings that may have no
        file."""
        for key in sorted(self._dataset.usual, key=lambda key: key != "images"):
            what = f"{self._name} {key}"
            needs = [need for one in self._sources.get(key, ()) if (need := needed(one, what))]
            sizes = [need.size for need in needs]
            size = None if None in sizes else sum(filter(None, sizes))
            if needs:
                yield next((need for need in needs if need.fault), Need(what, size))
            elif key not in self._sources and key not in optional:
                yield Need(what, fault=self._no_source(key))

    def _no_source(self, key: str) -> ConfigError:
        looked = f"not found under its usual name in {self._folder}; " if self._folder else ""
        advice = self._dataset.advice.get(key, "set this key to the path of the file")
        return ConfigError(f"params.yaml: sources.{self._name}: '{key}': {looked}{advice}")

    def each(self, key: str, check: Check | None = None) -> Iterator[Path]:
        """The local paths of the files of the setting `key`, one after another.

        A file from the web is downloaded when its turn comes.

        Args:
            check: downloads without a checksum must pass this check, or the next mirror is tried.
        """
        if key not in self._sources:
            raise self._no_source(key)
        for number, source in enumerate(self._sources[key]):
            yield obtain(source, f"{self._name} {key}", self._waiting / key / str(number), check)

    def one(self, key: str, check: Check | None = None) -> Path:
        """The local path of the only file of the setting `key`; see `each`."""
        return next(self.each(key, check))

    def copy(self, names: Mapping[str, str], raw: Path, optional: Collection[str] = ()) -> None:
        """Copy the file of every setting to `raw`, under the setting's name in `names`. `optional`
        are settings that may have no file."""
        for key, name in names.items():
            if key not in optional or self.has(key):
                copy_file(self.one(key), raw / name)


def _found(folder: Path, choice: str | tuple[str, ...]) -> list[Path]:
    """The files of a pattern, or all files with these names."""
    if isinstance(choice, str):
        return sorted(folder.glob(choice))
    paths = [folder / name for name in choice]
    return paths if all(path.exists() for path in paths) else []


class PublishedDataset(Dataset):
    """A data set of papers, whose files are on this machine or on the web."""

    usual: ClassVar[Usual]
    """The keys of the settings that name files, with the files' usual names."""
    advice: ClassVar[Mapping[str, str]] = {}
    """What to do if there is no source, for each setting with advice of its own."""
    may_lack: ClassVar[Sequence[str]] = ()
    """The settings that may have no file."""

    def has_all(self, path: Path) -> bool:
        """Whether a file has everything that its setting needs. Such a file is preferred if the
        folder has several candidates."""
        return True

    def optional(self, gatherer: Gatherer, settings: Any) -> Collection[str]:
        """The settings that may have no file, for these settings."""
        return (*self.may_lack, *(["images"] if getattr(settings, "without_images", False) else []))

    def download(self, settings: Any, raw: Path) -> None:
        self.collect(Gatherer(self, settings, raw), settings, raw)

    @abstractmethod
    def collect(self, gatherer: Gatherer, settings: Any, raw: Path) -> None:
        """Fill `raw` with the files that the gatherer gets; see `download`."""

    def needs(self, name: str, settings: Any) -> Iterator[Need]:
        gatherer = Gatherer(self, settings, Path())
        return gatherer.needs(self.optional(gatherer, settings))


def _is_local(sources: Sequence[Source]) -> bool:
    addresses = [address for source in sources for address in source.addresses]
    return any(local_path(address) is not None for address in addresses)


class SourceSettings(Strict):
    """`sources.NAME` of params.yaml: a folder, a source for each file, or both.

    `folder` holds files under their usual names.
    """

    folder: str | None = None


class ImageSettings(SourceSettings):
    """Settings of a data set whose images may be absent or incomplete."""

    without_images: bool = False
    """Use the data set without images, with published features."""
    only_present: bool = False
    """Leave out images whose image file is missing."""
