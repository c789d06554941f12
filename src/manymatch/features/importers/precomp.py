"""SCAN's "precomp" folder (Lee et al., ECCV 2018), which later work took over: for a split

    SPLIT_ims.npy   (n, R, F) float32
    SPLIT_caps.txt  a caption a line, five of an image after another
    SPLIT_ids.txt   an id a line

In `train` an image has one row. In `dev` and `test` its row is repeated five times, once for each
caption; of those the first is taken, and the others must begin as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from manymatch.features.importers.npy import NpyRows
from manymatch.features.importers.published import Published, Row, Wanted
from manymatch.features.importers.table import Table
from manymatch.system.errors import DataError

CAPTIONS = 5
SPLITS = ("train", "dev", "test", "testall")
MAX_TEXT_BYTES = 2**30


@dataclass(frozen=True)
class Split:
    """The files of one split, opened."""

    folder: Path
    name: str
    rows: NpyRows
    captions: list[str]
    copies: int
    """Rows of an image."""

    @property
    def images(self) -> int:
        return len(self.rows) // self.copies

    def captions_of(self, image: int) -> list[str]:
        return self.captions[CAPTIONS * image : CAPTIONS * (image + 1)]

    def where(self, image: int) -> str:
        return f"{self.rows.path}: row {self.copies * image}"

    def caption_lines(self, image: int) -> str:
        return f"{self.folder / self.name}_caps.txt:{CAPTIONS * image + 1}"


Owner = Callable[[Split, int], int]
"""The table's row of an image of a split; a `DataError` if it is none or another's captions."""


def open_precomp(folder: Path, table: Table, owner: Callable[[list[Split]], Owner]) -> Published:
    """The features in `folder`; `owner` finds whose a row is, given all splits."""
    splits = _without_part(
        [_open(folder, name) for name in SPLITS if (folder / f"{name}_ims.npy").exists()]
    )
    if not splits:
        raise DataError(f"{folder}: no train_ims.npy, dev_ims.npy or test_ims.npy in it")
    shapes = {split.rows.shape[1:] for split in splits}
    if len(shapes) > 1:
        raise DataError(f"{folder}: splits with features of different shapes {sorted(shapes)}")
    max_regions, width = shapes.pop()
    places = _places(splits, table, owner(splits))
    return Published(
        files=tuple(split.rows.path for split in splits),
        width=width,
        max_regions=max_regions,
        has_boxes=False,
        rows=lambda wanted: _rows(splits, places, wanted),
    )


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text; one that is not is a `DataError`."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if path.stat().st_size > MAX_TEXT_BYTES:
        raise DataError(f"{path}: greater than {MAX_TEXT_BYTES} B")
    lines = path.read_bytes().split(b"\n")
    return [_text(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def _text(line: bytes, where: str) -> str:
    try:
        return line.decode().strip()
    except UnicodeDecodeError:
        raise DataError(f"{where}: not UTF-8 text") from None


def _open(folder: Path, name: str) -> Split:
    rows = NpyRows(folder / f"{name}_ims.npy")
    captions = read_lines(folder / f"{name}_caps.txt")
    if len(rows.shape) != 3:
        raise DataError(f"{rows.path}: shape {rows.shape}, not (images, regions, width)")
    copies = {len(captions): CAPTIONS, len(captions) // CAPTIONS: 1}.get(len(rows), 0)
    if len(captions) % CAPTIONS or not copies:
        raise DataError(
            f"{rows.path}: {len(rows)} rows for the {len(captions)} captions of {name}_caps.txt; "
            f"expected as many, or one for {CAPTIONS} of them"
        )
    return Split(folder, name, rows, captions, copies)


def _without_part(splits: list[Split]) -> list[Split]:
    """COCO's `test` is the first part of its `testall`."""
    names = {split.name for split in splits}
    return [split for split in splits if split.name != "test" or "testall" not in names]


def _places(splits: list[Split], table: Table, owner: Owner) -> list[dict[int, int]]:
    """Of each split, image -> row of the store. Every row must have features, once."""
    places = [{image: owner(split, image) for image in range(split.images)} for split in splits]
    taken: dict[int, str] = {}
    for split, images in zip(splits, places, strict=True):
        for image, row in images.items():
            if row in taken:
                name = table.image_ids[row]
                raise DataError(f"{split.where(image)}: image '{name}' again, as {taken[row]}")
            taken[row] = split.where(image)
    missing = [name for row, name in enumerate(table.image_ids) if row not in taken]
    if missing:
        raise DataError(
            f"{splits[0].folder}: no features of image '{missing[0]}' of {table.path} "
            f"({len(missing)} images have none)"
        )
    return places


def _rows(splits: list[Split], places: list[dict[int, int]], wanted: Wanted) -> Iterator[Row]:
    for split, images in zip(splits, places, strict=True):
        for image, row in images.items():
            if wanted(row):
                _check_copies(split, image)
                features = split.rows.read(split.copies * image)
                yield Row(row, features, None, split.where(image))


def _check_copies(split: Split, image: int) -> None:
    """That the rows of an image begin with the same region."""
    rows = range(split.copies * image, split.copies * (image + 1))
    first = split.rows.read(rows[0], first=1).tobytes()
    for row in rows[1:]:
        if split.rows.read(row, first=1).tobytes() != first:
            raise DataError(f"{split.rows.path}: row {row}: not a copy of row {rows[0]}")
