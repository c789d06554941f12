"""Shards at a URL, which are fetched one by one to a bounded cache when they are read.

The folder of such shards holds the seal and the index alone. The cache holds a note that says where
the shards with this seal are, so that the folder has the same content wherever the shards are. A
note belongs to the user: a folder from elsewhere cannot bring a URL or a command with it.

A shard is used only if its content has the sealed SHA-256. So neither a host nor a cut connection
can change a batch.
"""

import contextlib
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from manymatch.config.layout import Layout
from manymatch.datasets.fetching.http import Answer, Final, Passing, opened
from manymatch.datasets.fetching.transfer import Expected, fetch
from manymatch.shards.index import INDEX, NAME, open_shards, read_head
from manymatch.util.errors import ConfigError, DataError, told
from manymatch.util.files import partial_path, remove, replacing, sha256, storage_errors, write_json
from manymatch.util.json_file import read_object
from manymatch.util.progress import say
from manymatch.util.seal import Seal

_CACHE = Layout().shard_cache
_BLOCK = 2**20
_HEAD_BYTES = 2**26
"""The most bytes of a seal and of an index, which are parsed in memory."""
_SHARD = re.compile(r"[0-9a-f]{64}-([0-9]{1,15})\.tar(\.partial)?")
"""The name of a shard in the cache: its hash and its bytes, which an unfinished one reserves."""


def write_head(url: str, folder: Path, cache_bytes: int) -> None:
    """Write the seal and the index of shards to `folder`, and note where the shards are.

    Args:
        url: the place above a folder with the name of `folder`, which holds the shards; a text with
            `{}` stands for the URL of each file.
        folder: ends with DATASET/FEATURES, the names that the shards must have.
        cache_bytes: the most bytes of the cache.

    Raises:
        DataError, SourceError: the host has other files, such as shards of another data set, or
            gives none.
    """
    with replacing(folder) as head:
        head.mkdir()
        _fetch(_address(url, folder, NAME), head / NAME, Expected(most=_HEAD_BYTES))
        try:
            seal = open_shards(head)
            size = seal.sizes.get(INDEX, _HEAD_BYTES)
            if size >= _HEAD_BYTES:
                raise DataError(f"{head}: the seal names no {INDEX}, or one that is too large")
            expected = Expected(size, seal.hashes[INDEX])
            _fetch(_address(url, folder, INDEX), head / INDEX, expected)
            index = read_head(head, folder.parent.name, folder.name)
        except DataError as error:
            fault = str(error)
            for name in (NAME, INDEX, ""):  # the last is the folder
                there = _address(url, folder, name).rstrip("/")
                fault = fault.replace(str(head / name), there)
            raise DataError(fault) from None
        write_json(_note(head), {"url": url, "bytes": cache_bytes})
    images = sum(split.images for split in index.splits.values())
    say(f"{folder}: the index of {images:,} images, whose shards are at {url}")


def source(seal: Seal, name: str) -> tuple[str, int] | None:
    """The URL of a shard that is not in the folder, and the most bytes of the cache; None if the
    shard is there or nothing is known of a URL."""
    here = (seal.path / name).is_file() or name not in seal.hashes
    if here or not (note := _note(seal.path)).is_file():
        return None
    content = read_object(note)
    return _address(content["url"], seal.path, name), content["bytes"]


def open_cached(seal: Seal, name: str, url: str, most: int) -> BinaryIO:
    """Open a shard in the cache, which is fetched first if necessary, from `source`. The stream
    stays valid when another process removes the shard from the cache.

    Raises:
        ConfigError: the cache is too small for the shard.
        DataError, SourceError: the host has another content, or does not give any.
    """
    size, digest = seal.sizes[name], seal.hashes[name]
    if size > most:
        raise ConfigError(
            f"{url}: the shard has {size / 1e9:.1f} GB, more than the cache. Raise shards.cache_gb "
            "in params.yaml and run the stage 'shards' again"
        )
    target = _CACHE / f"{digest}-{size}.tar"
    cached = Seal(_CACHE, {target.name: size}, {target.name: digest}, seal.remedy)
    with contextlib.suppress(DataError, FileNotFoundError):
        return _open(cached, target.name)
    with storage_errors(target), _lock(target.name[:2]):
        with contextlib.suppress(DataError, FileNotFoundError):  # another process has fetched it
            return _open(cached, target.name)
        remove(target)
        _reserve(partial_path(target), size, most)
        _fetch(url, target, Expected(size, digest))
        return target.open("rb")


def _note(folder: Path) -> Path:
    """The note about the shards whose head is in `folder`."""
    return _CACHE / f"{sha256(folder / NAME)}.json"


def _address(url: str, folder: Path, name: str) -> str:
    """The URL of a file of the shards in `folder`."""
    file = f"{folder.name}/{name}"
    return url.replace("{}", shlex.quote(file)) if "{}" in url else f"{url.rstrip('/')}/{file}"


def _open(cached: Seal, name: str) -> BinaryIO:
    """Open a whole shard in the cache, and note the time of use, by which shards are removed."""
    path = cached.check(name)
    stream = path.open("rb")
    os.utime(stream.fileno(), ns=(time.time_ns(), os.fstat(stream.fileno()).st_mtime_ns))
    return stream


def _lock(name: str) -> FileLock:
    """The lock of the shards whose hashes begin with this byte, or of the `room` in the cache."""
    return FileLock(_CACHE / f"{name}.lock.partial", fallback_to_soft=False)


def _reserve(unfinished: Path, size: int, most: int) -> None:
    """Remove the shards that were used longest ago, until there is room for `size` bytes."""
    while True:
        with _lock("room"):
            # Twice, because one look may see neither of the names of a shard that gets finished.
            paths = {*_CACHE.iterdir()} | {*_CACHE.iterdir()}
            matches = [_SHARD.fullmatch(path.name) for path in paths]
            others = {_CACHE / match[0]: int(match[1]) for match in matches if match}
            others.pop(unfinished, None)
            excess = size - most + sum(others.values())
            for path in sorted(others, key=_last_use):
                if excess > 0:
                    with contextlib.suppress(Timeout), contextlib.ExitStack() as stack:
                        # A reader holds the lock of the shard that the reader fetches or opens.
                        # The caller holds its own lock.
                        if path.name[:2] != unfinished.name[:2]:
                            stack.enter_context(_lock(path.name[:2]).acquire(blocking=False))
                        path.unlink(missing_ok=True)
                        excess -= others[path]
            if excess <= 0:
                unfinished.touch()
                return
        time.sleep(0.1)  # until the downloads of other processes have ended


def _last_use(path: Path) -> int:
    try:
        return path.stat().st_atime_ns
    except FileNotFoundError:  # another process has finished it
        return time.time_ns()


def _fetch(url: str, target: Path, expected: Expected) -> None:
    """Fetch a file and compare it with what is expected."""
    advice = "Check the network and the URL, or write these shards again"
    fetch([url], target, expected, "shards", opened=_opened, advice=advice, quiet=True)
    remove(target.with_name(f"{target.name}.json"))  # the note of an unfinished download


@contextlib.contextmanager
def _opened(url: str, start: int, validator: str | None) -> Iterator[Answer]:
    """The bytes of a file from `start` or from 0 on."""
    if url.startswith(("http:", "https:")):
        with opened(url, start, validator) as answer:
            yield answer
    elif url.startswith("pipe:"):
        yield Answer(0, None, None, _piped(url.removeprefix("pipe:")))
    else:
        yield Answer(start, None, None, _stored(url, start))


def _piped(command: str) -> Iterator[bytes]:
    """What a command of the user prints."""
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(command, shell=True, stdin=nothing, stdout=pipe) as process:
        assert process.stdout is not None
        yield from iter(partial(process.stdout.read, _BLOCK), b"")
    if process.returncode:
        raise Passing(f"the command has ended with the code {process.returncode}")


def _stored(url: str, start: int) -> Iterator[bytes]:
    """A file of a file system that fsspec knows, from `start` on."""
    system, path = file_system(url)
    try:
        with system.open(path, "rb") as stream:
            stream.seek(start)
            yield from iter(partial(stream.read, _BLOCK), b"")
    except (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError) as error:
        raise Final(f"not there or refused ({told(error)}). Check the URL") from None
    except Exception as error:  # each driver has errors of its own
        kind = Final if "Credentials" in type(error).__name__ else Passing
        raise kind(told(error)) from None


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, by fsspec, and the path in it. The credentials come from the
    environment."""
    from fsspec.core import url_to_fs

    try:
        options = {"auto_mkdir": True} if url.startswith("file:") else {}
        system: tuple[Any, str] = url_to_fs(url, **options)
    except Exception as error:  # each driver has errors of its own
        advice = "Correct the scheme or install its package (for s3: the extra remotes)"
        raise ConfigError(f"{url}: {told(error)}. {advice}") from None
    return system
