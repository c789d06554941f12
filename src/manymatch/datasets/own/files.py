"""The files of a folder of pictures, found by the names that captions give them."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from manymatch.datasets.image_files import image_files
from manymatch.datasets.own.record import REFUSED
from manymatch.foreign.regular_file import PICTURES


class Unusable(Exception):
    """Why a picture or caption is left out."""


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


class PictureFiles:
    """The pictures below a folder. Memory grows with the number of files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        paths = image_files(folder, (*PICTURES, *REFUSED))
        self._names = [path.relative_to(folder).as_posix() for path in paths]
        self._files: dict[Callable[[str], str], dict[str, list[str]]] = {}

    def _by(self, key: Callable[[str], str]) -> dict[str, list[str]]:
        """The names by key. Captions that name files exactly need the first key alone."""
        if key not in self._files:
            files: dict[str, list[str]] = defaultdict(list)
            for name in self._names:
                files[key(name)].append(name)
            self._files[key] = files
        return self._files[key]

    def find(self, name: str) -> str:
        """Return the path below the folder of the picture that captions call `name`.

        Raises:
            Unusable: no file, or several files, can be meant.
        """
        if "://" in name:
            raise Unusable("an address, not a file. Download the picture")
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or name[1:2] == ":":
            raise Unusable("a path out of the folder. Write the path below the folder of pictures")
        for key in _KEYS:
            if hits := self._by(key).get(key(path.as_posix())):
                if len(hits) > 1:
                    raise Unusable(f"{len(hits)} files of this name: {hits[0]}, {hits[1]}")
                return hits[0]
        raise Unusable(f"no such picture in {self._folder}")
