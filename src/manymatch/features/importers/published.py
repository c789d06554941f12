"""Published features as an importer opens them: their shape, and an iterator over their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

Wanted = Callable[[int], bool]
"""Whether a row of the store must still be written."""


@dataclass(frozen=True)
class Row:
    """The features of one image.

    Attributes:
        number: row of the store.
        features: (k, F), any float type.
        boxes: (k, 4) x1 y1 x2 y2 in 0..1, or None.
        where: file and line or row, for messages.
    """

    number: int
    features: NDArray[Any]
    boxes: NDArray[Any] | None
    where: str


@dataclass(frozen=True)
class Published:
    """Published features, of which only headers and names have been read.

    Attributes:
        files: all files that the features are read from.
        width: F, the numbers of a region.
        max_regions: the most regions of an image.
        has_boxes: whether the rows have boxes.
        rows: `rows(wanted)` yields each wanted row of the store once, in the order of the files.
            Only one row is in memory at a time.
    """

    files: tuple[Path, ...]
    width: int
    max_regions: int
    has_boxes: bool
    rows: Callable[[Wanted], Iterator[Row]]
