"""Shards at a URL, which are fetched one by one to a bounded cache when they are read.

The folder of such shards holds the seal and the index alone. The cache holds a note that says where
the shards with this seal are, so that the folder has the same content wherever the shards are. A
note belongs to the user: a folder from elsewhere cannot bring a URL or a command with it.

A shard is used only if its content has the sealed SHA-256. So neither a host nor a cut connection
can change a batch.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from manymatch.config.layout import Layout
from manymatch.datasets.fetching.http import LEAST_SPEED, WINDOW, Final, Passing, opened
from manymatch.shards.index import INDEX, NAME, Index, open_shards, read_index
from manymatch.util.errors import ConfigError, DataError, SourceError
from manymatch.util.files import partial_path, remove, replacing, sha256, storage_errors, write_json
from manymatch.util.json_file import read_object
from manymatch.util.progress import say, track
from manymatch.util.seal import Seal

_CACHE = Layout().shard_cache
_PAUSES: tuple[float, ...] = (1, 2, 4, 8, 16)
"""Seconds between the attempts to get further bytes of a file."""
_BLOCK = 2**20
_HEAD_BYTES = 2**26
"""The most bytes of a seal and of an index, which are parsed in memory."""
_LEAST_SAMPLE_BYTES = 1024
"""A sample has at least one member, which has a header of 512 bytes and a content."""
_SHARD = re.compile(r"[0-9a-f]{64}-([0-9]{1,15})\.tar(\.partial)?")
"""The name of a shard in the cache: its hash and its bytes, which an unfinished one reserves."""


def write_head(url: str, folder: Path, cache_bytes: int) -> Index:
    """Write the seal and the index of the shards at `url` to `folder`, and note the URL.

    Args:
        url: the folder of the shards, or a text with `{}` in the place of a file's name.
        cache_bytes: the most bytes of the cache.

    Raises:
        ConfigError: no package for the scheme of the URL.
        DataError: the files are not the head of shards.
        SourceError: the host does not give the files.
    """
    with replacing(folder) as partial:
        partial.mkdir()
        _download(_address(url, NAME), partial / NAME, _HEAD_BYTES)
        try:
            seal = open_shards(partial)
            if seal.sizes.get(INDEX, _HEAD_BYTES) >= _HEAD_BYTES:
                raise DataError(f"{partial}: the seal names no {INDEX}, or a larger one than usual")
            size, digest = seal.sizes[INDEX], seal.hashes[INDEX]
            _download(_address(url, INDEX), partial / INDEX, size, digest)
            index = read_index(partial)
            for split in index.splits.values():
                for name, images in zip(split.shards, split.shard_images, strict=True):
                    if images * _LEAST_SAMPLE_BYTES > seal.sizes.get(name, 0):
                        raise DataError(f"{partial}: the seal has no '{name}' of {images} images")
        except DataError as error:
            raise DataError(str(error).replace(str(partial), url)) from None
        _CACHE.mkdir(parents=True, exist_ok=True)
        write_json(_note(partial), {"url": url, "bytes": cache_bytes})
    return index


def upload(folder: Path, url: str) -> None:
    """Copy the shards in `folder` to `url`. The seal comes last: without it nobody reads the rest.

    Raises:
        ConfigError: the scheme of the URL cannot be written, or a package is missing.
        SourceError: the host does not take the files.
    """
    if url.startswith(("http:", "https:", "pipe:")):
        raise ConfigError(f"--to {url}: this scheme cannot be written. Name another, such as s3://")
    index = read_index(folder)
    names = [name for split in index.splits.values() for name in split.shards]
    for name in track([*names, INDEX, NAME], f"upload to {url}"):
        system, path = _file_system(_address(url, name))
        try:
            system.put_file(str(folder / name), path)
        except Exception as error:  # each driver has errors of its own
            raise SourceError(f"{_address(url, name)}: {_told(error)}. Try again") from None


def source(seal: Seal, name: str) -> tuple[str, int] | None:
    """The URL of a shard that is not in the folder, and the most bytes of the cache; None if the
    shard is there or nothing is known of a URL."""
    if (seal.path / name).is_file() or name not in seal.hashes:
        return None
    note = _note(seal.path)
    if not note.is_file():
        return None
    content = read_object(note)
    return _address(content["url"], name), content["bytes"]


def open_cached(seal: Seal, name: str, url: str, most: int) -> BinaryIO:
    """Open a shard in the cache, which is fetched first if necessary. The stream stays valid when
    another process removes the shard from the cache.

    Args:
        url, most: see `source`.

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
    with storage_errors(target), _lock(target.name):
        with contextlib.suppress(DataError, FileNotFoundError):  # another process has fetched it
            return _open(cached, target.name)
        remove(target)
        partial = partial_path(target)
        _reserve(partial, size, most)
        _download(url, partial, size, digest)
        stream = partial.open("rb")
        partial.replace(target)
        return stream


def _note(folder: Path) -> Path:
    """The note about the shards whose head is in `folder`."""
    return _CACHE / f"{sha256(folder / NAME)}.json"


def _address(url: str, name: str) -> str:
    if "{}" not in url:
        return f"{url.rstrip('/')}/{name}"
    return url.replace("{}", shlex.quote(name) if url.startswith("pipe:") else name)


def _open(cached: Seal, name: str) -> BinaryIO:
    """Open a whole shard in the cache, and note the time of use, by which shards are removed."""
    path = cached.check(name)
    stream = path.open("rb")
    os.utime(stream.fileno(), ns=(time.time_ns(), os.fstat(stream.fileno()).st_mtime_ns))
    return stream


def _lock(name: str) -> FileLock:
    """The lock of a shard that is fetched. The first byte of the hash bounds the lock files."""
    return FileLock(_CACHE / f"{name[:2]}.lock.partial", fallback_to_soft=False)


def _reserve(partial: Path, size: int, most: int) -> None:
    """Remove the shards that were used longest ago, until there is room for `size` bytes."""
    while True:
        with FileLock(_CACHE / "room.lock.partial", fallback_to_soft=False):
            others = []
            used = size
            for path in _CACHE.iterdir():
                match = _SHARD.fullmatch(path.name)
                if match and path != partial:
                    with contextlib.suppress(FileNotFoundError):
                        others.append((path.stat().st_atime_ns, int(match[1]), path))
                        used += int(match[1])
            for _, other, path in sorted(others):
                if used > most:
                    with contextlib.suppress(Timeout), contextlib.ExitStack() as stack:
                        if path.suffix == ".partial":  # of a process that has ended, or is at work
                            stack.enter_context(_lock(path.name).acquire(blocking=False))
                        path.unlink(missing_ok=True)
                        used -= other
            if used <= most:
                partial.touch()
                return
        time.sleep(0.1)  # until the downloads of other processes have ended


def _download(url: str, path: Path, size: int, digest: str | None = None) -> None:
    """Fetch a file. The bytes in `path` stay if they are of a file with a known hash.

    Args:
        size: the bytes of the file, without a hash the most bytes.
    """
    pauses, fresh = iter(_PAUSES), False
    while True:
        if digest is None or (path.exists() and path.stat().st_size > size):
            remove(path)
        start = path.stat().st_size if path.exists() else 0
        fresh |= start == 0
        try:
            if start < size:
                _fill(url, path, start, size, exact=digest is not None)
            if digest is None or sha256(path) == digest:
                return
            remove(path)
            if fresh:
                raise Final("the content differs from the seal. Write these shards again")
        except Final as fault:
            raise SourceError(f"{url}: {fault}") from None
        except Passing as fault:
            if path.exists() and path.stat().st_size >= start + LEAST_SPEED * WINDOW:
                pauses = iter(_PAUSES)
            pause = next(pauses, None)
            if pause is None:
                raise SourceError(f"{url}: {fault}. Check the network and the URL") from None
            say(f"{url}: {fault}; trying again in {pause:g} s")
            time.sleep(pause)


def _fill(url: str, path: Path, start: int, size: int, exact: bool) -> None:
    """Append the bytes of a file from `start` on."""
    received, since = 0, time.monotonic()
    with path.open("ab") as stream, contextlib.closing(_read(url, start)) as blocks:
        for position, block in blocks:
            if not received:
                stream.truncate(position)  # a host without range requests begins again
            if position + len(block) > size:
                raise Final(f"the file has more than the expected {size:,} bytes")
            stream.write(block)
            received += len(block)
            if (seconds := time.monotonic() - since) > WINDOW:
                if received < LEAST_SPEED * seconds:
                    raise Passing(f"only {received:,} bytes in {seconds:.0f} s")
                received, since = 1, time.monotonic()
        stream.seek(0, os.SEEK_END)
        if exact and stream.tell() < size:
            raise Passing(f"connection cut after {stream.tell():,} of {size:,} bytes")


def _read(url: str, start: int) -> Generator[tuple[int, bytes], None, None]:
    """The blocks of a file with their positions, from `start` or from 0 on."""
    if url.startswith(("http:", "https:")):
        with opened(url, start, None) as answer:
            yield from _numbered(answer.blocks, answer.start)
    elif url.startswith("pipe:"):
        with subprocess.Popen(
            url.removeprefix("pipe:"), shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout
            try:
                yield from _numbered(iter(lambda: process.stdout.read(_BLOCK), b""), 0)  # type: ignore[union-attr]
                if process.wait():
                    raise Passing(f"the command has ended with the code {process.returncode}")
            finally:
                process.kill()
    else:
        system, path = _file_system(url)
        try:
            with system.open(path, "rb") as stream:
                stream.seek(start)
                yield from _numbered(iter(lambda: stream.read(_BLOCK), b""), start)
        except (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError) as error:
            raise Final(f"{_told(error)}. Check the URL and the credentials") from None
        except Exception as error:  # each driver has errors of its own
            kind = Final if "Credentials" in type(error).__name__ else Passing
            raise kind(_told(error)) from None


def _numbered(blocks: Iterator[bytes], position: int) -> Iterator[tuple[int, bytes]]:
    for block in blocks:
        yield position, block
        position += len(block)


def _told(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, by fsspec, and the path in it. Its credentials come from the
    environment."""
    from fsspec.core import url_to_fs

    options = {"auto_mkdir": True} if url.startswith("file:") else {}
    try:
        system: tuple[Any, str] = url_to_fs(url, **options)
    except ImportError as error:
        raise ConfigError(f"{url}: {_told(error)}. For s3: 'manymatch[remotes]'") from None
    except ValueError as error:
        raise ConfigError(f"{url}: {_told(error)}. Correct the scheme") from None
    return system
