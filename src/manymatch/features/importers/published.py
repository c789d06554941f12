"""What an importer gives: the shape of the features, and the rows one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

Wanted = Callable[[int], bool]
"""Whether a row of the store is still to be written."""


@dataclass(frozen=True)
class Row:
    """The features of one image.

    `number`: row of the store; `features` (k, F) of any float type; `boxes` (k, 4) x1 y1 x2 y2 in
    0..1 or None; `where` it was read (file:line), for error messages.
    """

    number: int
    features: NDArray[Any]
    boxes: NDArray[Any] | None
    where: str


@dataclass(frozen=True)
class Published:
    """Published features, opened: nothing but headers and names has been read.

    `files` are all that the features are read from. `rows(wanted)` yields each wanted row of the
    store once, in the order of the files, never more than one of them in memory.
    """

    files: tuple[Path, ...]
    width: int
    max_regions: int
    has_boxes: bool
    rows: Callable[[Wanted], Iterator[Row]]
