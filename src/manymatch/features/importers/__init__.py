"""Features that somebody else has extracted and published, brought into a store.

A new format is one file with a function `open_published(path, table, max_regions) -> Published`
(see `published.py`) and its name here.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from manymatch.system.errors import ConfigError, nearest

if TYPE_CHECKING:
    from manymatch.features.importers.published import Published
    from manymatch.features.importers.table import Table

FORMATS = ("butd_tsv", "scan", "vse_infinity", "npy_folder", "clips")
"""Names in the configuration; each is a module of this package."""


def check_format(name: str) -> None:
    """An unknown format is a `ConfigError` that tells the nearest."""
    if name not in FORMATS:
        raise ConfigError(f"unknown format of features '{name}'{nearest(name, FORMATS)}")


def entry_point(name: str) -> str:
    """MODULE:FUNCTION that opens features in the format `name`."""
    check_format(name)
    return f"{__name__}.{name}:open_published"


def open_published(name: str, path: Path, table: Table, max_regions: int | None) -> Published:
    """The published features at `path`, in the format called `name`."""
    module, function = entry_point(name).split(":")
    published: Published = getattr(import_module(module), function)(path, table, max_regions)
    return published
