"""One seal for everything that a stage writes: it says that the files are whole.

    with sealed(folder) as partial:      # a folder: SEAL.json inside
        partial.mkdir()
        (partial / "model.json").write_text(...)
    with sealed(table) as partial:       # one file: NAME.seal.json beside the file
        pq.write_table(rows, partial)
    seal = open_sealed(folder, "Train the model again")

A seal names each file with its size and SHA-256. A block writes under a temporary name, and the
move into place is one rename. So a file is whole if it is there, after a kill at any moment, and
readers can be plain readers of Parquet, HDF5 and JSON.

`open_sealed` compares the sizes of all files, and the hashes of the files up to `WHOLE_BYTES`. A
process computes a hash once, as long as the size and the time of change of the file stay the same.
COCO's shards have 17 GB, so the content of a larger file is compared when its reader calls
`Seal.check`.

A seal detects damage, but no forgery, because the author of a folder from elsewhere writes the seal
too. A seal contains no time and no code, so that equal content gives equal bytes. Then DVC reruns
no later stage. `dvc.lock` contains the hashes of the code and the inputs of a stage.
"""

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from manymatch.util.errors import DataError
from manymatch.util.files import beside, remove, replacing, sha256, sync, write_json
from manymatch.util.json_file import content_hash, read_object

NAME, ENDING = "SEAL.json", ".seal.json"
"""The seal of a folder, and the ending of the seal beside a file."""
WHOLE_BYTES = 2**26
"""Files up to this size are compared as a whole when a seal is opened. SHA-256 takes 50 ms."""
_VERSION = 1
_OWN = "seal_sha256"
State = tuple[int, int, int]
"""Size, time of change and inode of a file."""


@dataclass(frozen=True)
class Seal:
    """The files of a sealed folder, or one sealed file.

    Attributes:
        path: the folder, or the file.
        sizes, hashes: bytes and SHA-256 of each file. In a folder, the names are relative to the
            folder, with slashes.
        remedy: a sentence that says how to make the files again.
    """

    path: Path
    sizes: Mapping[str, int]
    hashes: Mapping[str, str]
    remedy: str

    def check(self, name: str | None = None) -> Path:
        """The path of a file, which has no `name` in a seal of a single file. Its content is
        compared with its SHA-256 once per process.

        Raises:
            DataError: the file is missing, damaged, not regular or not in the seal.
        """
        name = self.path.name if name is None else name
        path = self._path(name)
        if name not in self.hashes:
            raise DataError(f"{path}: not in the seal. {self.remedy}")
        if _hash(path, self.state(name)) != self.hashes[name]:
            raise DataError(
                f"{path}: the content differs from the seal. The file was damaged or edited. "
                f"{self.remedy}"
            )
        return path

    def check_all(self) -> None:
        """Compare the contents of all files, as `check` does."""
        for name in self.hashes:
            self.check(name)

    def _path(self, name: str) -> Path:
        return self.path / name if self.path.is_dir() else self.path.with_name(name)

    def state(self, name: str) -> State:
        """The state of a file that has the sealed size; else a `DataError`."""
        path = self._path(name)
        try:
            state = path.stat()
        except OSError:
            raise DataError(f"{path}: no such file. {self.remedy}") from None
        if state.st_size != self.sizes[name]:
            raise DataError(
                f"{path}: damaged or cut off: {state.st_size:,} bytes, not the sealed "
                f"{self.sizes[name]:,}. {self.remedy}"
            )
        return state.st_size, state.st_mtime_ns, state.st_ino


@lru_cache(maxsize=2**16)
def _hash(path: Path, state: State) -> str:
    """SHA-256 of a file, computed once while its `state` stays the same."""
    return sha256(path)


def seal_path(path: Path) -> Path:
    """The seal of a folder or of a file."""
    return path / NAME if path.is_dir() else beside(path, ENDING)


@contextlib.contextmanager
def sealed(
    target: Path, *, loose: Collection[str] = (), known: Mapping[str, str] | None = None
) -> Iterator[Path]:
    """Yield a temporary path for a file or folder; then seal the content and move it to `target`.

    If the block fails, `target` stays as it was.

    Args:
        target: an earlier file or folder of this name is replaced.
        loose: names of files in the folder that people may edit, such as a model card.
        known: SHA-256 of files whose hash is known; the block may add to the mapping.

    Raises:
        StorageError: the disk is full, or the place cannot be written.
    """
    with replacing(target) as partial:
        yield partial
        folder, files = partial.is_dir(), {target.name: partial}
        if folder:
            below = sorted(
                (path.relative_to(partial).as_posix(), path) for path in partial.rglob("*")
            )
            files = {
                name: path for name, path in below if path.is_file() and name not in (NAME, *loose)
            }
        facts = {}
        for name, path in files.items():
            facts[name] = path.stat().st_size, (known or {}).get(name) or sha256(path)
            sync(path)
        content = _content(facts)
        replaced = target.is_file() and not folder
        if replaced:
            # A kill from here on leaves a file without a seal, never one with another file's seal.
            remove(beside(target, ENDING))
        else:
            write_json(partial / NAME if folder else beside(target, ENDING), content)
    if replaced:
        write_json(beside(target, ENDING), content)


def write_seal(folder: Path, files: Mapping[str, tuple[int, str]]) -> None:
    """Write a seal to `folder` of the files there, and of `files` that lie elsewhere, with their
    bytes and their SHA-256."""
    here = {path.name: (path.stat().st_size, sha256(path)) for path in folder.iterdir()}
    write_json(folder / NAME, _content(dict(sorted({**files, **here}.items()))))


def _content(files: Mapping[str, tuple[int, str]]) -> dict[str, Any]:
    """The content of a seal of `files` with their bytes and their SHA-256."""
    facts = {name: {"bytes": size, "sha256": digest} for name, (size, digest) in files.items()}
    content: dict[str, Any] = {"version": _VERSION, "files": facts, "code": "", "inputs": {}}
    return content | {_OWN: content_hash(content)}


def open_sealed(path: Path, remedy: str, whole_bytes: int | None = WHOLE_BYTES) -> Seal:
    """The seal of a folder or file, after a comparison with the files; see the module's text.

    Args:
        path: the folder or file, which may come from elsewhere.
        remedy: a sentence that says how to make the files again, for messages.
        whole_bytes: the size up to which the content of a file is compared now. Of larger files,
            the size is compared. None: the seal alone is read.

    Raises:
        DataError: the seal or a file is missing or damaged, or an older version wrote the files.
    """
    seal_file = seal_path(path)
    try:
        state = seal_file.stat()
    except OSError:
        if not os.path.lexists(path):
            raise DataError(f"{path}: no such file or folder. {remedy}") from None
        raise DataError(
            f"{path}: no seal ({seal_file.name}), so unfinished or of an older version. {remedy}"
        ) from None
    seal = _read(path, remedy, seal_file, (state.st_size, state.st_mtime_ns, state.st_ino))
    if whole_bytes is not None:
        for name, expected in seal.sizes.items():
            if expected <= whole_bytes:
                seal.check(name)
            else:
                seal.state(name)
    return seal


def check_if_sealed(path: Path, remedy: str) -> None:
    """Compare a file with the seal beside it, if there is a seal: a user's own file has none. Other
    content is a `DataError`."""
    if path.is_file() and beside(path, ENDING).is_file():
        open_sealed(path, remedy).check()


@lru_cache(maxsize=256)
def _read(path: Path, remedy: str, seal_file: Path, state: State) -> Seal:
    try:
        content = read_object(seal_file)
        if content.pop(_OWN, None) != content_hash(content) or content["version"] != _VERSION:
            raise ValueError("its content does not have its hash")
        facts = {name: _checked(name, stored) for name, stored in content["files"].items()}
        sizes = {name: size for name, (size, _) in facts.items()}
        return Seal(path, sizes, {name: digest for name, (_, digest) in facts.items()}, remedy)
    except DataError as error:
        raise DataError(f"{error}. {remedy}") from None
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DataError(f"{seal_file}: damaged or no seal ({error}). {remedy}") from None


def _checked(name: str, facts: Mapping[str, Any]) -> tuple[int, str]:
    """The bytes and the SHA-256 of a file, whose name and hash become names of files elsewhere.
    JSON has numbers such as 1e999 and true in the place of whole numbers."""
    parts, size, digest = PurePosixPath(name).parts, facts["bytes"], facts["sha256"]
    name.encode()  # half a character is a `ValueError`
    if not parts or ".." in parts or name.startswith("/") or "\0" in name:
        raise ValueError(f"the name {name[:60]!a}")
    if type(size) is not int or size < 0:
        raise ValueError(f"the size {size!r:.70}")
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ValueError(f"the hash {digest[:70]!a}")
    return size, digest
