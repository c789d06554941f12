"""A folder with one `.npy` file (R, F) per image, named by the image's id, file or number.

If `id_mapping.json` (see `precomp.py`) is in the folder or its parent, the names are ids of that
file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manymatch.features.importers.npy_rows import NpyRows
from manymatch.features.importers.precomp import MAPPING, read_mapping
from manymatch.features.importers.published import ImageTable, Published, Row, Wanted
from manymatch.system.errors import DataError


def open_npy_folder(path: Path, images: ImageTable, max_regions: int | None) -> Published:
    """Open the folder and read the header of each file; see `importers.open_published`."""
    files = _files(path, images)
    images.require_all(files, path)
    shapes = [_shape(file) for file in files.values()]
    return Published(
        files=tuple(files.values()),
        width=shapes[0][1],
        max_regions=max_regions or max(regions for regions, _ in shapes),
        has_boxes=False,
        rows=lambda wanted: _rows(files, wanted),
    )


def _files(folder: Path, images: ImageTable) -> dict[int, Path]:
    """Return the file of each row of the store."""
    mappings = [path for path in (folder / MAPPING, folder.parent / MAPPING) if path.is_file()]
    mapping = read_mapping(mappings[0]) if mappings else {}
    files: dict[int, Path] = {}
    for file in sorted(folder.glob("*.npy")):
        row = images.row_named(mapping.get(file.stem, file.stem))
        if row is None:
            continue
        if row in files:
            image_id = images.image_ids[row]
            raise DataError(f"{file}: a second file of image '{image_id}', after {files[row].name}")
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
