"""Published features: what an importer opens, and the images of the caption table, looked up by the
names that published files give them."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from numpy.typing import NDArray

from manymatch.features.image_list import read_columns
from manymatch.util.errors import DataError

Wanted = Callable[[int], bool]
"""Whether a row of the store must still be written."""


@dataclass(frozen=True)
class Row:
    """The features of one image."""

    number: int
    """Row of the store."""
    features: NDArray[Any]
    """(k, F), any float type."""
    boxes: NDArray[Any] | None
    """(k, 4) x1 y1 x2 y2 in 0..1."""
    where: str
    """File and line or row, for messages."""


@dataclass(frozen=True)
class Published:
    """Published features, of which only headers and names have been read."""

    files: tuple[Path, ...]
    width: int
    """F, the numbers of a region."""
    max_regions: int
    has_boxes: bool
    rows: Callable[[Wanted], Iterator[Row]]
    """Yields each wanted row of the store once, in the order of the files, one in memory."""


_NUMBER = re.compile(r"(?:.*_)?0*(\d+)")
_WORD = re.compile(r"\w+")


@dataclass
class ImageTable:
    """The images of a caption table. Image i is row i of the feature store.

    An image has up to three names: its id, the stem of its file name, and the number at the end of
    either. For example, COCO's TSV files call `COCO_val2014_000000391895.jpg` 391895. If both the
    image and the published features have names with more than a number, the whole names count.
    """

    path: Path
    image_ids: list[str] = field(default_factory=list)
    _names: dict[str, int | None] = field(default_factory=dict)
    _numbers: dict[str, int | None] = field(default_factory=dict)
    _bare_numbers: dict[str, int | None] = field(default_factory=dict)
    """Those of `_numbers` that are a whole id or stem."""
    _rows_by_caption: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def add(self, image_id: str, file: str) -> None:
        """Add the next image."""
        row = len(self.image_ids)
        self.image_ids.append(image_id)
        stem = PurePosixPath(file).stem
        for name in {image_id, stem}:
            _enter(self._names, name, row)
            if number := _number(name):
                _enter(self._numbers, number, row)
                if name.isdecimal():
                    _enter(self._bare_numbers, number, row)

    def add_caption(self, caption: str) -> None:
        """Add a caption to the last image."""
        key, row = _digest(caption), len(self.image_ids) - 1
        self._rows_by_caption[key] = (*self._rows_by_caption.get(key, ()), row)

    def row_named(self, name: str) -> int | None:
        """Return the row of the image called `name` (an id, file name or number), or None.

        Raises:
            DataError: several images have this name.
        """
        stem = PurePosixPath(name).stem
        numbers = self._numbers if stem.isdecimal() else self._bare_numbers
        for rows, key in ((self._names, name), (self._names, stem), (numbers, _number(stem))):
            if key is not None and key in rows:
                row = rows[key]
                if row is None:
                    raise DataError(f"{self.path}: several images have the name '{name}'")
                return row
        return None

    def rows_with_captions(self, captions: Iterable[str]) -> list[int]:
        """Return the rows of the images that have all `captions`, up to case and punctuation."""
        rows = [set(self._rows_by_caption.get(_digest(caption), ())) for caption in captions]
        return sorted(set.intersection(*rows))

    def require_all(self, rows: Container[int], source: Path) -> None:
        """Raise a `DataError` about `source` unless `rows` has the row of every image."""
        missing = [name for row, name in enumerate(self.image_ids) if row not in rows]
        if missing:
            raise DataError(
                f"{source}: no features of image '{missing[0]}' of {self.path} "
                f"({len(missing)} images have none). Check that both belong to the same dataset"
            )


def read_image_table(captions: Path) -> ImageTable:
    """Read the images of the caption table `captions`.

    Raises:
        DataError: the table is damaged, or the captions of an image are not consecutive.
    """
    images = ImageTable(captions)
    seen: set[str] = set()
    for image_id, file, caption in read_columns(captions, ("image_id", "file", "caption")):
        if not images.image_ids or images.image_ids[-1] != image_id:
            if image_id in seen:
                raise DataError(
                    f"{captions}: captions of image '{image_id}' are not consecutive rows"
                )
            seen.add(image_id)
            images.add(image_id, file)
        images.add_caption(caption)
    return images


def _enter(rows: dict[str, int | None], name: str, row: int) -> None:
    """Map `name` to `row`, or to None if another row has the same name."""
    rows[name] = row if rows.get(name, row) == row else None


def _number(stem: str) -> str | None:
    match = _NUMBER.fullmatch(stem)
    return match[1] if match else None


def _digest(caption: str) -> int:
    """A hash of this process: millions of captions would take much memory."""
    return hash(" ".join(_WORD.findall(caption.lower())))
