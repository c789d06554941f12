"""The sources of a dataset, set one by one or found in a folder under their usual names.

A path that is set for a file wins over the folder, and what is in the folder over the web: nobody
downloads what they have. Of several files of one setting those that are missed come from the web.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from manymatch.fetching.sources import Source, downloads, file_name, local_path, obtain
from manymatch.fetching.transfer import Check
from manymatch.system.errors import ConfigError, SourceError


def _several(value: object) -> object:
    """One source for a list of one."""
    return (value,) if isinstance(value, str | Mapping) else value


Sources = Annotated[tuple[Source, ...], BeforeValidator(_several)]
"""In params.yaml one source or a list of them."""

Usual = Mapping[str, Sequence[str | tuple[str, ...]]]
"""Setting -> what to look for in a folder: patterns, or tuples of names that all must be there. The
first that is found counts."""


ADVICE = "set it to where the file is"


class Gatherer:
    """Gets the files of a dataset, each by the name of its setting."""

    def __init__(
        self,
        name: str,
        raw: Path,
        folder: str | None,
        usual: Usual,
        given: Mapping[str, Sequence[Source] | Source | None],
        has_all: Callable[[Path], bool] = lambda path: True,
    ) -> None:
        """`has_all`: whether what is found in the folder has all that its setting needs; one that
        has is preferred."""
        self._name, self._folder = name, folder
        self._waiting = downloads(raw, name)
        self._sources: dict[str, Sequence[Source]] = {}
        place = _place(name, folder) if folder is not None else None
        if place is not None:
            self._sources |= _in_folder(place, usual, has_all)
        for key, value in given.items():
            sources = (value,) if isinstance(value, Source) else value or ()
            if sources and (key not in self._sources or _is_local(sources)):
                self._sources[key] = [
                    _nearest(source, place, f"{name} {key}") for source in sources
                ]

    def is_local(self, key: str) -> bool:
        """Whether `key` names something on this machine."""
        return self.has(key) and _is_local(self._sources[key])

    def has(self, key: str) -> bool:
        return key in self._sources

    def all(self, key: str, advice: str = ADVICE, check: Check | None = None) -> list[Path]:
        """As `each`, all of them at once."""
        return list(self.each(key, advice, check))

    def each(self, key: str, advice: str = ADVICE, check: Check | None = None) -> Iterator[Path]:
        """Local paths of what `key` names; `advice` tells what to do where it names nothing.

        A source from the web is downloaded only when its path is asked for.

        Downloads without a checksum must pass `check`, else the next mirror is asked.
        """
        if key not in self._sources:
            looked = f"not found under its usual name in {self._folder}; " if self._folder else ""
            raise ConfigError(f"params.yaml: sources.{self._name}: '{key}': {looked}{advice}")
        for number, source in enumerate(self._sources[key]):
            yield obtain(source, f"{self._name} {key}", self._waiting / key / str(number), check)

    def one(self, key: str, advice: str = ADVICE, check: Check | None = None) -> Path:
        return self.all(key, advice, check)[0]


def _is_local(sources: Sequence[Source]) -> bool:
    addresses = [address for source in sources for address in source.addresses]
    return any(local_path(address) is not None for address in addresses)


def _nearest(source: Source, folder: Path | None, what: str) -> Source:
    """A source from the web, or the file of its name in the folder, which is checked as it is."""
    if folder is None or _is_local([source]):
        return source
    path = folder / file_name(source.url, what)
    return source.model_copy(update={"url": str(path), "mirrors": ()}) if path.exists() else source


def _place(name: str, folder: str) -> Path:
    path = local_path(folder)
    if path is None or not path.is_dir():
        raise SourceError(f"params.yaml: sources.{name}.folder: {folder} is not a folder here")
    return path


def _in_folder(
    path: Path, usual: Usual, has_all: Callable[[Path], bool]
) -> dict[str, Sequence[Source]]:
    found: dict[str, Sequence[Source]] = {}
    for key, choices in usual.items():
        hits = [hit for hit in (_matches(path, choice) for choice in choices) if hit]
        if hits:
            best = max(hits, key=lambda hit: all(map(has_all, hit)))  # of equals the first
            found[key] = tuple(Source(url=str(match)) for match in best)
    return found


def _matches(folder: Path, choice: str | tuple[str, ...]) -> list[Path]:
    if isinstance(choice, str):
        return sorted(folder.glob(choice))
    paths = [folder / name for name in choice]
    return paths if all(path.exists() for path in paths) else []
