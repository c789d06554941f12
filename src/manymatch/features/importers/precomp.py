"""SCAN's folder of precomputed features (Lee et al., ECCV 2018), which later work reuses; and
folders with one file per image.

A folder has these files for each split:

    SPLIT_ims.npy   (n, R, F) float32
    SPLIT_caps.txt  one caption per line, five consecutive lines per image
    SPLIT_ids.txt   one id per line

In `train` an image has one row. In `dev` and `test` its row is repeated five times, once for each
caption; the first row is used, and the others must begin with the same region.

The formats `scan` and `vse_infinity` differ in how they find the image of a row: SCAN's ids are
numbers of another table, so that `scan` compares captions. VSE-infinity (Chen et al., CVPR 2021)
has `id_mapping.json`, from ids to file names, beside SCAN's folder under the name `precomp`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manymatch.datasets.precomp import CAPTIONS_PER_IMAGE as CAPTIONS
from manymatch.datasets.precomp import MAPPING, caption_lines, image_ids, read_mapping
from manymatch.features.importers.importing import ImageTable, Published, Row
from manymatch.util.errors import DataError
from manymatch.util.numpy_file import feature_array

SPLITS = ("train", "dev", "test", "testall")
FOLDER = "precomp"


@dataclass(frozen=True)
class Split:
    """The opened files of one split. Each image has `copies` rows."""

    folder: Path
    name: str
    path: Path
    rows: NDArray[Any]
    captions: list[str]
    copies: int

    @property
    def images(self) -> int:
        return len(self.rows) // self.copies

    def captions_of(self, image: int) -> list[str]:
        return self.captions[CAPTIONS * image : CAPTIONS * (image + 1)]

    def where(self, image: int) -> str:
        return f"{self.path}: row {self.copies * image}"

    def caption_lines(self, image: int) -> str:
        return f"{self.folder / self.name}_caps.txt:{CAPTIONS * image + 1}"

    def read(self, image: int) -> tuple[NDArray[Any], None]:
        """Return the features of an image, whose rows must all begin with the same region."""
        start = self.copies * image
        first, *others = self.rows[start : start + self.copies]
        for row, other in enumerate(others, start=start + 1):
            if other[0].tobytes() != first[0].tobytes():
                raise DataError(f"{self.path}: row {row}: not a copy of row {start}")
        return np.array(first), None


FindRow = Callable[[Split, int], int]
"""Finds the store's row of an image of a split, or raises a `DataError`."""


def open_scan(path: Path, images: ImageTable, max_regions: int | None) -> Published:
    """Open SCAN's folder; see `importers.open_published`.

    The image of a row is the image of the caption table that has all five captions. A few images
    share all their captions: these are taken in the order of the caption table.
    """
    taken: set[int] = set()

    def find_row(split: Split, image: int) -> int:
        candidates = images.rows_with_captions(split.captions_of(image))
        row = next((row for row in candidates if row not in taken), None)
        if row is None:
            where = split.caption_lines(image)
            raise DataError(f"{where}: no image of {images.path} has these captions")
        taken.add(row)
        return row

    return _published(path, _open_splits(path), images, find_row)


def open_vse_infinity(path: Path, images: ImageTable, max_regions: int | None) -> Published:
    """Open VSE-infinity's folder; see `importers.open_published`.

    The id of a row gives a file name, and the captions must belong to the image of this file.
    """
    mapping = read_mapping(path / MAPPING)
    splits = _open_splits(path / FOLDER)
    ids = {
        split.name: image_ids(split.folder / f"{split.name}_ids.txt", split.images)
        for split in splits
    }

    def find_row(split: Split, image: int) -> int:
        name = ids[split.name][image]
        row = images.row_named(mapping.get(name, ""))
        if row is None:
            raise DataError(
                f"{split.where(image)}: no image of {images.path} has the id '{name}'. Check that "
                "both belong to the same dataset"
            )
        if row not in images.rows_with_captions(split.captions_of(image)):
            where, image_id = split.caption_lines(image), images.image_ids[row]
            raise DataError(f"{where}: not the captions of image '{image_id}' (id '{name}')")
        return row

    return _published(path / FOLDER, splits, images, find_row)


def _open_splits(folder: Path) -> list[Split]:
    names = [name for name in SPLITS if (folder / f"{name}_ims.npy").exists()]
    if "testall" in names and "test" in names:
        names.remove("test")  # COCO's `test` is the first part of its `testall`
    if not names:
        raise DataError(f"{folder}: no train_ims.npy, dev_ims.npy or test_ims.npy in it")
    splits = []
    for name in names:
        path = folder / f"{name}_ims.npy"
        rows = feature_array(path, "images", "regions", "width")
        captions = [line.text for line in caption_lines(folder / f"{name}_caps.txt")]
        copies = {len(captions): CAPTIONS, len(captions) // CAPTIONS: 1}.get(len(rows), 0)
        if len(captions) % CAPTIONS or not copies:
            raise DataError(
                f"{path}: {len(rows)} rows for the {len(captions)} captions of "
                f"{name}_caps.txt; expected one row for each caption, or one for every {CAPTIONS}"
            )
        splits.append(Split(folder, name, path, rows, captions, copies))
    return splits


def _published(
    folder: Path, splits: list[Split], images: ImageTable, find_row: FindRow
) -> Published:
    shapes = {split.rows.shape[1:] for split in splits}
    if len(shapes) > 1:
        raise DataError(f"{folder}: splits with features of different shapes {sorted(shapes)}")
    max_regions, width = shapes.pop()
    rows = (
        Row(find_row(split, image), split.where(image), partial(split.read, image))
        for split in splits
        for image in range(split.images)
    )
    known = list(images.each_once(rows, folder))
    files = tuple(split.path for split in splits)
    return Published(files, width, max_regions, has_boxes=False, rows=lambda: known)


def open_npy_folder(path: Path, images: ImageTable, max_regions: int | None) -> Published:
    """Open a folder with one `.npy` file (R, F) per image; see `importers.open_published`.

    The files are named by the image's id, file or number. If `id_mapping.json` is in the folder or
    its parent, the names are ids of that file.
    """
    mappings = [folder / MAPPING for folder in (path, path.parent)]
    mapping = next((read_mapping(file) for file in mappings if file.is_file()), {})
    named = ((images.row_named(mapping.get(f.stem, f.stem)), f) for f in sorted(path.glob("*.npy")))
    image_rows = (
        Row(row, str(file), partial(_read_file, file)) for row, file in named if row is not None
    )
    rows = list(images.each_once(image_rows, path))
    files = [Path(row.where) for row in rows]
    shapes = [feature_array(file, "regions", "width").shape for file in files]
    return Published(
        files=tuple(files),
        width=shapes[0][1],
        max_regions=max_regions or max(regions for regions, _ in shapes),
        has_boxes=False,
        rows=lambda: rows,
    )


def _read_file(file: Path) -> tuple[NDArray[Any], None]:
    return np.array(feature_array(file, "regions", "width")), None
