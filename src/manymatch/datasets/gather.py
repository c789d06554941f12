"""The sources of a dataset, set one by one or found in a folder under their usual names.

A path that is set for a file wins over the folder, and what is in the folder over the web: nobody
downloads what they have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from manymatch.datasets.sources import Source, downloads, local_path, obtain
from manymatch.errors import ConfigError, SourceError


def _several(value: object) -> object:
    """One source for a list of one."""
    return (value,) if isinstance(value, str | Mapping) else value


Sources = Annotated[tuple[Source, ...], BeforeValidator(_several)]
"""In params.yaml one source or a list of them."""

Usual = Mapping[str, Sequence[str | tuple[str, ...]]]
"""Setting -> what to look for in a folder: patterns, or tuples of names that all must be there. The
first that is found counts."""


class Gatherer:
    """Gets the files of a dataset, each by the name of its setting."""

    def __init__(
        self,
        name: str,
        raw: Path,
        folder: str | None,
        usual: Usual,
        given: Mapping[str, Sequence[Source] | Source | None],
    ) -> None:
        self._name, self._folder = name, folder
        self._waiting = downloads(raw, name)
        self._sources: dict[str, Sequence[Source]] = {}
        if folder is not None:
            self._sources |= _in_folder(name, folder, usual)
        for key, value in given.items():
            sources = (value,) if isinstance(value, Source) else value or ()
            if sources and (key not in self._sources or _is_local(sources)):
                self._sources[key] = sources

    def has(self, key: str) -> bool:
        return key in self._sources

    def all(self, key: str, advice: str = "set it to where the file is") -> list[Path]:
        """Local paths of what `key` names; `advice` tells what to do where it names nothing."""
        if key not in self._sources:
            looked = f"not found under its usual name in {self._folder}; " if self._folder else ""
            raise ConfigError(f"params.yaml: sources.{self._name}: '{key}': {looked}{advice}")
        return [
            obtain(source, f"{self._name} {key}", self._waiting / key / str(number))
            for number, source in enumerate(self._sources[key])
        ]

    def one(self, key: str, advice: str = "set it to where the file is") -> Path:
        return self.all(key, advice)[0]


def _is_local(sources: Sequence[Source]) -> bool:
    addresses = [address for source in sources for address in source.addresses]
    return any(local_path(address) is not None for address in addresses)


def _in_folder(name: str, folder: str, usual: Usual) -> dict[str, Sequence[Source]]:
    path = local_path(folder)
    if path is None or not path.is_dir():
        raise SourceError(f"params.yaml: sources.{name}.folder: {folder} is not a folder here")
    found: dict[str, Sequence[Source]] = {}
    for key, choices in usual.items():
        matches = next((hit for hit in (_matches(path, choice) for choice in choices) if hit), [])
        if matches:
            found[key] = tuple(Source(url=str(match)) for match in matches)
    return found


def _matches(folder: Path, choice: str | tuple[str, ...]) -> list[Path]:
    if isinstance(choice, str):
        return sorted(folder.glob(choice))
    paths = [folder / name for name in choice]
    return paths if all(path.exists() for path in paths) else []
