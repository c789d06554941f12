"""What is indexed: the items of a source, in a defined order."""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from manymatch.batch.caption_text import caption_fault
from manymatch.model.answer import Side
from manymatch.model.picture_bytes import refuse_bomb
from manymatch.search.index.manifest import REMEDY
from manymatch.util.errors import ConfigError, DataError, SourceError, repeated
from manymatch.util.files import sha256, storage_error
from manymatch.util.prefetch import map_ahead
from manymatch.util.progress import say
from manymatch.util.regular_file import (
    PICTURES,
    UNREADABLE,
    conversion,
    files_below,
    open_regular,
    read_regular,
    regular_path,
    resolved,
)
from manymatch.util.text_lines import numbered_lines

if TYPE_CHECKING:
    from manymatch.methods.shared.embeddings import Embeddings
    from manymatch.model.model import Model

_ADVICE = ". Replace or remove the file"
"""The advice about a broken picture of a data set. A broken picture of a user is left out."""
_SUFFIXES = {"store": (".h5", ".hdf5"), "captions": (".txt", ".txt.gz")}
_GROWN = 2**26
"""The bytes to which the file of an item may have grown since it was indexed."""
_THREADS, _AHEAD = 4, 8
"""Threads that decode pictures, and pictures that wait. The extractor keeps more of them."""


@dataclass(frozen=True)
class Entry:
    """One item of a source.

    Attributes:
        path: the item's name within the source, unique.
        size, mtime_ns: the state of the item's file; 0 if the item is not a file.
        sha256: the hash of the content; "" as long as the content was not read.
        facts: further columns of the index.
    """

    path: str
    size: int = 0
    mtime_ns: int = 0
    sha256: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The item's name in the index: the same in every index of the same source."""
        return hashlib.sha256(self.path.encode()).hexdigest()[:16]


def changed_ns(state: os.stat_result) -> int:
    """The time of change of a file, in nanoseconds; before 1678 and after 2262 the first and the
    last time that a column can have."""
    return max(-(2**63), min(state.st_mtime_ns, 2**63 - 1))


Loaded = tuple[Entry, Any]
"""An entry whose content is known, and the content; or the entry and a `DataError`."""


class Source(ABC):
    """Where items come from."""

    kind: ClassVar[str]
    side: ClassVar[Side] = "images"

    def __init__(self, path: Path, split: str | None = None) -> None:
        self.path, self.split = path, split

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """All items in the order of the index."""

    def listed(self) -> list[Entry]:
        """All items, each with a path of its own; a `DataError` if two have the same path."""
        entries = list(self.entries())
        if (path := repeated(entry.path for entry in entries)) is not None:
            raise DataError(f"{self.path}: two items are called '{path}'. Rename one of them")
        return entries

    def sha256(self, entry: Entry) -> str:
        """The hash of the content of an item.

        Raises:
            DataError: the content cannot be read.
        """
        return entry.sha256

    @abstractmethod
    def load(self, model: "Model", entries: Iterable[Entry]) -> Iterator[Loaded]:
        """The entries with their contents, in the given order."""

    @abstractmethod
    def encode(self, model: "Model", contents: Iterable[Any]) -> "Embeddings":
        """The embeddings of contents that `load` gave."""

    def picture(self, item: dict[str, Any]) -> bytes:
        """The picture file of an item, a row of the index.

        Raises:
            DataError: the item has no picture, or its file is not a regular file in the source.
        """
        raise DataError(f"{self.path}: there are no pictures in this source")


class PictureFolder(Source):
    """The picture files in a folder and in all folders below.

    Files are sorted by their path. Hidden files and folders are left out, and linked folders are
    not entered. A linked file must be in the folder, too.
    """

    kind = "folder"

    def entries(self) -> Iterator[Entry]:
        def unreadable(error: OSError) -> None:
            say(f"left out: {storage_error(error)}")

        files = files_below(self.path, PICTURES + UNREADABLE, linked=False, unreadable=unreadable)
        yield from sorted(map(self._entry, files), key=lambda entry: entry.path)

    def _entry(self, file: Path) -> Entry:
        path = file.relative_to(self.path).as_posix()
        try:
            state = file.stat()
        except OSError:  # a dangling link; the message comes when the file is read
            return Entry(path)
        return Entry(path, state.st_size, changed_ns(state))

    def file(self, path: str) -> Path:
        """The regular file of an item, which may be a link to another file in the folder.

        Raises:
            DataError: there is no such file in the folder.
        """
        try:
            path.encode()
            file = resolved(self.path / path, strict=True)
        except FileNotFoundError:
            raise DataError(f"{self.path / path}: no such file") from None
        except OSError as error:
            raise DataError(str(storage_error(error))) from None
        except ValueError:  # half a character, or a zero byte
            raise DataError(f"{self.path / path}: the name is not valid UTF-8") from None
        if path.lower().endswith(UNREADABLE):
            raise DataError(f"{self.path / path}: not a format that is read. {conversion(path)}")
        if not file.is_relative_to(resolved(self.path)) or not path.lower().endswith(PICTURES):
            raise DataError(f"{self.path / path}: not a picture in the folder {self.path}")
        return file

    def sha256(self, entry: Entry) -> str:
        try:
            with regular_path(self.file(entry.path)) as name:
                return sha256(Path(name))
        except OSError as error:
            raise DataError(str(storage_error(error))) from None

    def load(self, model: "Model", entries: Iterable[Entry]) -> Iterator[Loaded]:
        read = model.picture_reader()

        def loaded(entry: Entry) -> Loaded:
            file = self.path / entry.path
            try:
                state = self._entry(file)
                content = self.sha256(entry)
                with open_regular(self.file(entry.path)) as stream:
                    refuse_bomb(stream, file)
                picture = read(self.file(entry.path))
                if self._entry(file) != state:
                    raise DataError(f"{file}: changed while it was read")
                return replace(state, sha256=content), picture
            except OSError as error:  # the file was removed meanwhile
                return entry, DataError(str(storage_error(error)))
            except DataError as error:
                return entry, DataError(str(error).partition(_ADVICE)[0])

        yield from map_ahead(loaded, entries, _AHEAD, _THREADS)

    def encode(self, model: "Model", contents: Iterable[Any]) -> "Embeddings":
        return model.encode_images(contents, progress=False)

    def picture(self, item: dict[str, Any]) -> bytes:
        try:
            most = max(item.get("size", 0), _GROWN)
            return read_regular(self.file(item["path"]), most)
        except OSError as error:
            raise DataError(str(storage_error(error))) from None


class CaptionFile(Source):
    """The lines of a text file, one caption a line; blank lines are left out."""

    kind = "captions"
    side = "texts"

    def entries(self) -> Iterator[Entry]:
        for number, line in numbered_lines(self.path):
            text = line.strip()
            content = hashlib.sha256(text.encode()).hexdigest()
            yield Entry(f"{self.path.name}:{number}", sha256=content, facts={"text": text})

    def load(self, model: "Model", entries: Iterable[Entry]) -> Iterator[Loaded]:
        for entry in entries:
            text = entry.facts["text"]
            fault = caption_fault(text)
            yield entry, DataError(f"{entry.path}: {fault}") if fault else text

    def encode(self, model: "Model", contents: Iterable[Any]) -> "Embeddings":
        return model.encode_texts(contents)


def source_of(path: Path, split: str | None = None) -> Source:
    """The source at `path`: a folder of pictures, shards or one `split` of them, a feature store,
    or a file of captions.

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
    if kind in (light := {source.kind: source for source in (PictureFolder, CaptionFile)}):
        return light[kind](path)
    from manymatch.search.index import feature_sources  # torch takes a second to import

    if kind == "store":
        return feature_sources.StoreFile(path)
    if kind == "shards":
        return feature_sources.ShardFolder(path, split)
    raise DataError(f"{path}: an unknown kind of source, '{kind}'. {REMEDY}")
