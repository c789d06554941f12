"""Shards are copied to a URL, where a seal never stands above shards that are not its own."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manymatch.shards.index import INDEX, NAME, read_index
from manymatch.shards.remote import file_system
from manymatch.util.errors import ConfigError, SourceError, told
from manymatch.util.files import replacing
from manymatch.util.locks import lock_path, locked
from manymatch.util.progress import track


def upload(folder: Path, url: str) -> None:
    """Copy the shards in `folder` to a folder with its name at `url`. An earlier seal there is
    removed first, and the new seal comes last, because readers need the seal first. A host that
    does not take the files is a `SourceError`."""
    index = read_index(folder)
    names = [name for split in index.splits.values() for name in split.shards]
    place = f"{url.rstrip('/')}/{folder.name}"
    unseal(place)
    for name in track([*names, INDEX, NAME], f"upload to {url}"):
        put(folder / name, f"{place}/{name}")


@contextlib.contextmanager
def at_host(url: str) -> Iterator[tuple[Any, str]]:
    """The file system of a URL and the path in it. A fault of the host in the block is a
    `SourceError`."""
    system, path = file_system(url)
    try:
        yield system, path
    except Exception as error:  # each driver has errors of its own
        raise SourceError(f"{url}: {told(error)}. Run the command again") from None


def put(file: Path, url: str) -> None:
    """Copy a file to `url`. A kill leaves the earlier file there, or none."""
    with at_host(url) as (system, path):
        if url.startswith("file:"):  # fsspec would write to the file itself
            target = Path(path)
            with locked(lock_path(target), target), replacing(target) as partial:
                shutil.copyfile(file, partial)
        else:
            system.put_file(str(file), path)


def unseal(url: str, records: str = "-") -> None:
    """Remove the seal of the shards at `url`, and the records of parts that are not in the folder
    `records`, because other shards will take the names of theirs."""
    with at_host(url) as (system, path):
        system.invalidate_cache()  # other machines write there
        if system.exists(f"{path}/{NAME}"):
            system.rm(f"{path}/{NAME}")
        for file in system.find(f"{path}/parts"):
            if file.endswith(".json") and f"/{records}/" not in file:
                system.rm(file)


def require_writable(url: str) -> None:
    """A `ConfigError` if `upload` cannot write to this scheme, or a package is missing."""
    if url.startswith(("http:", "https:", "pipe:")):
        raise ConfigError(f"--to {url}: this scheme cannot be written. Name another, such as s3://")
    file_system(url)
