"""Captions beside pictures: `a.jpg` and `a.txt`, whose lines are the captions of `a.jpg`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manymatch.datasets.image_files import image_files
from manymatch.datasets.own.files import composed
from manymatch.datasets.own.record import Record
from manymatch.util.errors import DataError
from manymatch.util.regular_file import PICTURES, UNREADABLE
from manymatch.util.text_lines import numbered_lines


class TextFiles:
    """The text files below a folder by their path without the ending."""

    def __init__(self, folder: Path) -> None:
        self._exact: dict[str, list[Path]] = {}
        self._files: dict[str, list[Path]] = {}
        for path in image_files(folder, (".txt",)):
            stem = path.relative_to(folder).with_suffix("").as_posix()
            self._exact.setdefault(composed(stem), []).append(path)
            self._files.setdefault(composed(stem).lower(), []).append(path)

    def of(self, picture: Path) -> list[Path]:
        """Return the text files of a picture: one, or several that differ in case."""
        stem = composed(picture.with_suffix("").as_posix())
        return self._exact.get(stem) or self._files.get(stem.lower(), [])

    def __bool__(self) -> bool:
        return bool(self._exact)


def read_beside(folder: Path, captions: Path) -> Iterator[Record]:
    """Yield a record for each picture below `folder` with a text file below `captions`."""
    texts = TextFiles(captions)
    for path in image_files(folder, (*PICTURES, *UNREADABLE)):
        name = path.relative_to(folder)
        files = texts.of(name)
        if not files:
            continue
        lines, fault = list[str](), None
        if len(files) > 1:
            fault = f"{len(files)} files of captions: {files[0].name}, {files[1].name}"
        else:
            try:
                lines = [line for _, line in numbered_lines(files[0])]
            except (DataError, OSError) as error:
                fault = str(error)
        yield Record(name.as_posix(), lines, str(files[0]), fault=fault)
