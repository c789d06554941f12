"""A folder with one `.npy` file (R, F) an image, named as the image: by id, file or number.

With an `id_mapping.json` in it or beside it (`vse_infinity.py`) names are that file's ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manymatch.features.importers.npy import NpyRows
from manymatch.features.importers.published import Published, Row, Wanted
from manymatch.features.importers.table import Table
from manymatch.features.importers.vse_infinity import MAPPING, read_mapping
from manymatch.system.errors import DataError


def open_published(path: Path, table: Table, max_regions: int | None) -> Published:
    """See `importers.open_published`; of every file only the header is read."""
    files = _files(path, table)
    missing = [name for row, name in enumerate(table.image_ids) if row not in files]
    if missing:
        count = len(missing)
        raise DataError(f"{path}: no file of image '{missing[0]}' ({count} images have none)")
    shapes = [_shape(file) for file in files.values()]
    return Published(
        files=tuple(files.values()),
        width=shapes[0][1],
        max_regions=max_regions or max(regions for regions, _ in shapes),
        has_boxes=False,
        rows=lambda wanted: _rows(files, wanted),
    )


def _files(folder: Path, table: Table) -> dict[int, Path]:
    """Row of the store -> file."""
    places = (folder / MAPPING, folder.parent / MAPPING)
    found = next((place for place in places if place.is_file()), None)
    mapping = read_mapping(found) if found else {}
    files: dict[int, Path] = {}
    for file in sorted(folder.glob("*.npy")):
        row = table.named(mapping.get(file.stem, file.stem))
        if row is None:
            continue
        if row in files:
            image_id = table.image_ids[row]
            raise DataError(f"{file}: image '{image_id}' has the file {files[row].name} already")
        files[row] = file
    return files


def _open(file: Path) -> NpyRows:
    rows = NpyRows(file)
    if len(rows.shape) != 2:
        raise DataError(f"{file}: shape {rows.shape}, not (regions, width)")
    return rows


def _shape(file: Path) -> tuple[int, ...]:
    rows = _open(file)
    rows.close()
    return rows.shape


def _rows(files: dict[int, Path], wanted: Wanted) -> Iterator[Row]:
    for number, file in files.items():
        if wanted(number):
            rows = _open(file)
            yield Row(number, rows.read_all(), None, str(file))
            rows.close()
