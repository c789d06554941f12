"""Captions beside pictures: `a.jpg` and `a.txt`, whose lines are the captions of `a.jpg`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manymatch.datasets.image_files import image_files
from manymatch.datasets.own.record import REFUSED, Record, split_of_path
from manymatch.foreign.regular_file import PICTURES
from manymatch.foreign.text_lines import numbered_lines
from manymatch.system.errors import DataError


def read_beside(folder: Path, captions: Path) -> Iterator[Record]:
    """Yield a record for each picture below `folder` with a text file below `captions`."""
    for path in image_files(folder, (*PICTURES, *REFUSED)):
        name = path.relative_to(folder)
        text = captions / name.with_suffix(".txt")
        if not text.is_file():
            continue
        lines, fault = list[str](), None
        try:
            lines = [line for _, line in numbered_lines(text)]
        except DataError as error:
            fault = str(error)
        path_split = split_of_path(f"{name.parent.as_posix()}/_")
        yield Record(name.as_posix(), lines, str(text), path_split=path_split, fault=fault)
