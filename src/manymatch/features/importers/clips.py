"""Features of clips: one vector each, in a file (`vectors.py`) or a folder of such files.

Those of HowTo100M (Miech et al., ICCV 2019) are 2,048 of frames (ResNet-152) and 2,048 of movement
(ResNeXt-101, 3D), each the maximum over time. As its code does, the two are L2-normalised and put
side by side. Vectors that are in one piece are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manymatch.features.importers.published import Published, Row, Wanted
from manymatch.features.importers.table import Table
from manymatch.features.importers.vectors import Streams, is_vectors, open_vectors, vector
from manymatch.system.errors import DataError

Places = dict[Path, dict[str, int]]
"""File -> name -> row of the store."""


def open_published(path: Path, table: Table, max_regions: int | None) -> Published:
    """See `importers.open_published`. A file is opened twice, for its names and for its rows, and
    never two of them at once."""
    files = sorted(filter(is_vectors, path.iterdir())) if path.is_dir() else [path]
    places = _places(files, table)
    taken = {row for names in places.values() for row in names.values()}
    missing = [name for row, name in enumerate(table.image_ids) if row not in taken]
    if missing:
        raise DataError(f"{path}: no features of clip '{missing[0]}' ({len(missing)} have none)")
    return Published(
        files=tuple(places),
        width=_width(places),
        max_regions=1,
        has_boxes=False,
        rows=lambda wanted: _rows(places, wanted),
    )


def _places(files: list[Path], table: Table) -> Places:
    """Whose the vectors are; those of no clip of the table are passed over."""
    rows = {name: row for row, name in enumerate(table.image_ids)}
    places: Places = {}
    taken: dict[str, Path] = {}
    for file in files:
        with open_vectors(file) as streams:
            names = [name for name in streams[0] if name in rows]
        again = next((name for name in names if name in taken), None)
        if again is not None:
            raise DataError(f"{file}: clip '{again}' has features in {taken[again].name} already")
        taken |= dict.fromkeys(names, file)
        if names:
            places[file] = {name: rows[name] for name in names}
    return places


def _width(places: Places) -> int:
    file, names = next(iter(places.items()))
    with open_vectors(file) as streams:
        return len(_joined(streams, next(iter(names)), file))


def _rows(places: Places, wanted: Wanted) -> Iterator[Row]:
    for file, names in places.items():
        left = {name: row for name, row in names.items() if wanted(row)}
        if not left:
            continue
        with open_vectors(file) as streams:
            for name, row in left.items():
                yield Row(row, _joined(streams, name, file)[None], None, f"{file}: '{name}'")


def _joined(streams: Streams, name: str, file: Path) -> NDArray[np.float32]:
    where = f"{file}: '{name}'"
    if any(name not in stream for stream in streams):
        raise DataError(f"{where}: has only one of the features 2d and 3d")
    vectors = [vector(stream[name], where) for stream in streams]
    if len(vectors) == 1:
        return vectors[0]
    lengths = [max(float(np.linalg.norm(each)), 1e-12) for each in vectors]
    return np.concatenate([each / length for each, length in zip(vectors, lengths, strict=True)])
