"""Features of video clips: one vector each, in a file (see `vector_files.py`) or a folder of files.

HowTo100M (Miech et al., ICCV 2019) publishes 2,048 numbers of frames (`2d`, ResNet-152) and 2,048
of motion (`3d`, ResNeXt-101), each the maximum over time. As in HowTo100M's code, both vectors are
L2-normalised and concatenated. Vectors in one piece are used unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manymatch.features.importers.published import ImageTable, Published, Row, Wanted
from manymatch.features.importers.vector_files import Streams, is_vector_file, open_vectors, vector
from manymatch.util.errors import DataError

Contents = dict[Path, dict[str, int]]
"""File -> name of a clip in it -> row of the store."""


def open_clips(path: Path, images: ImageTable, max_regions: int | None) -> Published:
    """Open a file or folder of vectors; see `importers.open_published`.

    Each file is opened twice, for its names and for its vectors. Only one file is open at a time.
    """
    files = sorted(filter(is_vector_file, path.iterdir())) if path.is_dir() else [path]
    contents = _contents(files, images)
    images.require_all({row for names in contents.values() for row in names.values()}, path)
    first = next(_rows(contents, lambda row: True))
    return Published(
        files=tuple(contents),
        width=first.features.shape[1],
        max_regions=1,
        has_boxes=False,
        rows=lambda wanted: _rows(contents, wanted),
    )


def _contents(files: list[Path], images: ImageTable) -> Contents:
    """Return the clips of the caption table in each file; other clips are skipped."""
    rows = {name: row for row, name in enumerate(images.image_ids)}
    contents: Contents = {}
    file_of: dict[str, Path] = {}
    for file in files:
        with open_vectors(file) as streams:
            names = [name for name in streams[0] if name in rows]
        repeated = next((name for name in names if name in file_of), None)
        if repeated is not None:
            raise DataError(
                f"{file}: clip '{repeated}' has features in {file_of[repeated].name} already"
            )
        file_of |= dict.fromkeys(names, file)
        if names:
            contents[file] = {name: rows[name] for name in names}
    return contents


def _rows(contents: Contents, wanted: Wanted) -> Iterator[Row]:
    for file, names in contents.items():
        remaining = {name: row for name, row in names.items() if wanted(row)}
        if not remaining:
            continue
        with open_vectors(file) as streams:
            for name, row in remaining.items():
                features = _concatenated(streams, name, file)[None]
                yield Row(row, features, None, f"{file}: '{name}'")


def _concatenated(streams: Streams, name: str, file: Path) -> NDArray[np.float32]:
    """(D,) the clip's vector; the vectors of two streams normalised and concatenated."""
    where = f"{file}: '{name}'"
    if any(name not in stream for stream in streams):
        raise DataError(f"{where}: only one of the features 2d and 3d")
    vectors = [vector(stream[name], where) for stream in streams]
    if len(vectors) == 1:
        return vectors[0]
    # The squares of very small and very large numbers do not fit float32.
    wide = [part.astype(np.float64) for part in vectors]
    return np.concatenate([part / (np.linalg.norm(part) or 1.0) for part in wide], dtype=np.float32)
