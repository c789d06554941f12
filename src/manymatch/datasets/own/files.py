"""The files of a folder of pictures: found by the names that captions give them, and compared.

Near-duplicates are pictures that are nearly the same: resized, compressed again, or twice in the
folder. A picture's signature is a perceptual hash, the signs of its 64 lowest frequencies against
their median (Zauner 2010), and its colours on a grid. The hash finds candidates, the colours
decide: pictures with little structure have equal hashes.
"""

import contextlib
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from manymatch.datasets.image_files import image_files
from manymatch.datasets.own.record import Unusable
from manymatch.util.images import read_small
from manymatch.util.regular_file import PICTURES, UNREADABLE, conversion, resolved


def composed(text: str) -> str:
    """Return `text` in Unicode's form NFC: some systems write a letter and its accent apart."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


_KEYS: tuple[Callable[[str], str], ...] = (
    composed,
    lambda name: PurePosixPath(composed(name)).name,
    lambda name: composed(name).lower(),
    lambda name: PurePosixPath(composed(name)).name.lower(),
)
"""A name means the file whose key is the same; the first key that a file has decides."""


_LONGEST, _LONGEST_PART = 240, 255
"""Characters of a name, and bytes of a file's or folder's name, of which file systems have 255."""


class PictureFiles:
    """The pictures below a folder. Memory grows with the number of files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # A name in a table may be absolute, and the folder may be given by a link.
        self._roots = (Path.cwd() / os.path.normpath(folder), resolved(folder))
        paths = image_files(folder, (*PICTURES, *UNREADABLE))
        self._names = [path.relative_to(folder).as_posix() for path in paths]
        self._files: dict[Callable[[str], str], defaultdict[str, list[str]]] = {}
        self._found: set[str] = set()

    @property
    def not_found(self) -> list[str]:
        """The files that no call of `find` returned."""
        return [name for name in self._names if name not in self._found]

    def __len__(self) -> int:
        return len(self._names)

    def find(self, name: str) -> str:
        """Return the path below the folder of the picture that captions call `name`.

        Raises:
            Unusable: no file, or several files, can be meant, or the file's kind is not read.
        """
        path = self._relative(name)
        for key in _KEYS:
            if key not in self._files:  # most captions name files exactly: the first key suffices
                files = self._files[key] = defaultdict(list)
                for file in self._names:
                    files[key(file)].append(file)
            if hits := self._files[key].get(key(path.as_posix())):
                self._found.update(hits)
                if len(hits) > 1:
                    raise Unusable(f"{len(hits)} files of this name: {hits[0]}, {hits[1]}")
                refuse_unreadable(hits[0])
                return hits[0]
        with contextlib.suppress(OSError):  # a name that is too long
            if path.name and (self._folder / path).is_file():
                raise Unusable(
                    f"the ending '{path.suffix}' is none of a picture that can be read: "
                    f"{', '.join(PICTURES)}. Rename or convert the file"
                )
        raise Unusable(f"no such picture in {self._folder}")

    def _relative(self, name: str) -> PurePosixPath:
        """Return the path below the folder."""
        if "://" in name:
            raise Unusable("an address, not a file. Download the picture")
        path = PurePosixPath(os.path.normpath(name.replace("\\", "/")))
        if path.is_absolute():
            root = next(filter(path.is_relative_to, self._roots), None)
            path = path.relative_to(root) if root else path
        if path.is_absolute() or ".." in path.parts or name[1:2] == ":":
            raise Unusable("a path out of the folder. Write the path below the folder of pictures")
        return path


def is_below(path: Path, folder: Path) -> bool:
    """Return whether a path leads into a folder and not out of the folder again by `..`."""
    return path.is_relative_to(folder) and ".." not in path.relative_to(folder).parts


class TakenNames:
    """The names of the pictures of a data set. Each name is a file in one folder."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: set[str] = set()

    def take(self, file: str) -> None:
        """Add the name of a picture.

        Raises:
            Unusable: no file can have the name, or another picture has the name or a similar one.
        """
        path = PurePosixPath(file)
        refuse_unreadable(file)
        if not path.name or path.is_absolute() or ".." in path.parts or not file.isprintable():
            raise Unusable("a name that leaves the folder or cannot be printed")
        if len(file) > _LONGEST or any(len(part.encode()) > _LONGEST_PART for part in path.parts):
            raise Unusable(
                f"a name of more than {_LONGEST} characters, or a part of more than "
                f"{_LONGEST_PART} bytes"
            )
        key = word(file).lower()
        folders = {parent.as_posix() for parent in PurePosixPath(key).parents} - {"."}
        if key in self._folders or not folders.isdisjoint(self._files):
            raise Unusable("the name of a picture is that of a folder of another. Rename one")
        earlier = self._files.setdefault(key, file)
        if earlier != file:
            raise Unusable(f"the name differs from {earlier} only in case or spaces. Rename one")
        self._folders |= folders


def word(file: str) -> str:
    """Return the name of a file as a single word, of which ids are made."""
    return re.sub(r"\s+", "_", composed(file))


def refuse_unreadable(file: str) -> None:
    """Check that the ending of a picture is not one of a kind that cannot be read.

    Raises:
        Unusable: it is.
    """
    ending = PurePosixPath(file).suffix.lower()
    if ending in UNREADABLE:
        raise Unusable(f"a picture with the ending {ending} cannot be read. {conversion(ending)}")


_SIDE = 16
_LOW = 8
"""Frequencies in each direction, and cells of the grid of colours."""
_BITS = 6
"""Near-duplicates differ in at most this number of the 64 bits. One of 8 bytes is then equal."""
_LEVELS = 6.0
"""Near-duplicates' colours differ by at most this mean, of 255 levels."""
_PAIRS = 2**17
"""Pairs in memory, or as many as pictures."""
_POSITIONS = np.arange(_SIDE) + 0.5
_COSINES = np.cos(np.pi / _SIDE * np.outer(np.arange(_LOW), _POSITIONS))

Signature = tuple[int, bytes]
"""The 64 bits of the hash, and (8, 8, 3) colours."""


def signature(picture: Path | bytes) -> Signature:
    """Return the signature of a picture, which is decoded completely as a check.

    Raises:
        DataError: the picture cannot be decoded, or has fewer than 16 rows or columns.
    """
    small = read_small(picture, _SIDE)
    # Rounded: the frequencies of a plain picture are zeros up to errors of rounding.
    low = np.rint(_COSINES @ small.mean(axis=2) @ _COSINES.T).ravel()
    bits = np.packbits(low > np.median(low[1:]))
    colours = small.reshape(_LOW, 2, _LOW, 2, 3).mean(axis=(1, 3)).astype(np.uint8)
    return int.from_bytes(bits.tobytes(), "big"), colours.tobytes()


def duplicate_groups(signatures: list[Signature]) -> NDArray[np.int32]:
    """Return a number for each picture. Near-duplicates, also over several steps, have the same."""
    distinct = sorted(set(signatures))
    position = {one: number for number, one in enumerate(distinct)}
    hashes = np.array([one for one, _ in distinct], np.uint64)
    colours = np.frombuffer(b"".join(one for _, one in distinct), np.uint8)
    colours = colours.reshape(len(distinct), -1)
    groups = np.arange(len(distinct), dtype=np.int32)
    waiting: list[NDArray[np.intp]] = []
    count = 0
    for shift in range(0, 64, 8):  # near-duplicates have one of these bytes in common
        part = (hashes >> np.uint64(shift)) & np.uint64(255)
        order = np.argsort(part, kind="stable")
        for bucket in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
            for pairs in _duplicate_pairs(bucket, hashes, colours):
                waiting.append(pairs)
                count += len(pairs)
                if count > max(_PAIRS, len(distinct)):
                    groups, waiting, count = _joined(groups, waiting), [], 0
    return _joined(groups, waiting)[[position[one] for one in signatures]]


def _joined(groups: NDArray[np.int32], pairs: list[NDArray[np.intp]]) -> NDArray[np.int32]:
    """Return the groups after those of the two pictures of each pair become one."""
    ends = groups[np.concatenate([np.zeros((0, 2), np.intp), *pairs])].T
    graph = coo_array((np.ones(ends.shape[1]), tuple(ends)), shape=(len(groups), len(groups)))
    _, joined = connected_components(graph, directed=False)
    return joined[groups]


def _duplicate_pairs(
    bucket: NDArray[np.intp], hashes: NDArray[np.uint64], colours: NDArray[np.uint8]
) -> Iterator[NDArray[np.intp]]:
    """Yield the near-duplicates (n, 2) within a bucket, in blocks of rows."""
    rows = max(1, _PAIRS // max(1, len(bucket)))
    for start in range(0, len(bucket) - 1, rows):
        block, rest = bucket[start : start + rows], bucket[start:]
        near = np.bitwise_count(hashes[block][:, None] ^ hashes[rest]) <= _BITS
        first, second = np.nonzero(np.triu(near, 1))
        pairs = np.stack([block[first], rest[second]], axis=1)
        ours, theirs = colours[pairs[:, 0]].astype(np.int16), colours[pairs[:, 1]]
        yield pairs[np.abs(ours - theirs).mean(axis=1) <= _LEVELS]
