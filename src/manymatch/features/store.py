"""Reading and writing feature stores (`layout.py` describes the file).

    with FeatureWriter(path, image_ids, max_regions=36, width=2048) as writer:
        writer.write(0, features)                 # (k, F), k <= 36
        ...
    with FeatureStore(path) as store:
        features, n_regions, boxes = store.read([5, 0, 7])

The writer and the reader check every row: its shape, that it has no NaN and no infinity, and a
checksum that reveals silent damage.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manymatch.features import layout
from manymatch.features.rows import Boxes, Features, RowFile
from manymatch.util.errors import DataError
from manymatch.util.files import is_own, move_into_place, partial_path, remove, storage_errors
from manymatch.util.prefetch import map_ahead
from manymatch.util.progress import say

_HEADROOM = 2**16
"""Bytes for HDF5's own structures; an upper bound."""
Rows = tuple[Features, NDArray[np.int32], Boxes]
"""features (k, R, F) float16 or uint8, n_regions (k,), boxes (k, R, 4) float32 or None."""


class FeatureStore:
    """A finished store, opened for reading. Only the rows that are read are in memory.

    Several threads, forked workers and processes can read at the same time: reads are positional,
    and a store is replaced, never changed. A row is checked when it is first read.

    Raises:
        DataError: the file is missing, cut off or not a store, or a row is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows = RowFile(path, "rb")
        stored = self._rows.layout
        self.image_ids = stored.image_ids
        """In row order."""
        self.width, self.max_regions = stored.width, stored.max_regions
        """F and R. Images with fewer than R regions are padded with zeros."""
        self.has_boxes = stored.has_boxes
        self.dtype: Literal["float16", "uint8"] = "uint8" if stored.dtype == np.uint8 else "float16"
        """The type of the features: uint8 for pixels."""
        self.attributes = stored.attributes
        """How the features were made: backbone, weights_sha256, preprocessing, ..."""
        self.n_regions: NDArray[np.int32] = self._rows.column("n_regions")
        self._checksums = self._rows.column("checksum")
        self._checked = np.zeros(len(self), np.bool_)
        if self.n_regions.min() < 1 or self.n_regions.max() > self.max_regions:
            self.close()
            raise DataError(
                f"{path}: the store is unfinished or damaged. Run the stage 'features' again"
            )

    def __enter__(self) -> FeatureStore:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._rows.close()

    def __len__(self) -> int:
        return len(self.image_ids)

    @property
    def sha256(self) -> str:
        """Hash of the whole content; the checksums stand for the rows."""
        facts = [self.max_regions, self.width, self.dtype, self.has_boxes, self.attributes]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        digest.update(self._checksums.tobytes())
        return digest.hexdigest()

    def read(self, rows: Sequence[int] | NDArray[np.integer[Any]]) -> Rows:
        """The given rows, in the given order.

        Raises:
            DataError: a row is damaged.
            IndexError: a row number is not in the store.
        """
        indices = np.asarray(rows, dtype=np.int64)
        if indices.size and not (indices.min() >= 0 and indices.max() < len(self)):
            raise IndexError(f"{self.path}: row numbers must be in 0..{len(self) - 1}")
        features, boxes = self._rows.empty(len(indices))
        for start, stop in _runs(indices):
            part = features[start:stop], None if boxes is None else boxes[start:stop]
            self._fill(int(indices[start]), *part)
            self._check(int(indices[start]), *part)
        return features, self.n_regions[indices], boxes

    def blocks(self, size: int = 32) -> Iterator[tuple[range, Rows]]:
        """All rows in order, `size` at a time. A thread reads the next block meanwhile.

        There is one thread only: to the operating system, reads of several threads look random,
        and it then does not read ahead.
        """

        def read(rows: range) -> tuple[range, Features, Boxes]:
            features, boxes = self._rows.empty(len(rows))
            self._fill(rows.start, features, boxes)
            return rows, features, boxes

        starts = range(0, len(self), size)
        parts = (range(start, min(start + size, len(self))) for start in starts)
        with contextlib.closing(map_ahead(read, parts, depth=1)) as blocks:
            for rows, features, boxes in blocks:
                self._check(rows.start, features, boxes)
                yield rows, (features, self.n_regions[rows.start : rows.stop], boxes)

    def _fill(self, first: int, features: Features, boxes: Boxes) -> None:
        """Read the rows from `first` on, as many as `features` and `boxes` have."""
        self._rows.fill("features", first, features)
        if boxes is not None:
            self._rows.fill("boxes", first, boxes)

    def _check(self, first: int, features: Features, boxes: Boxes) -> None:
        """Check the rows from `first` on, unless they have been checked before."""
        rows = slice(first, first + len(features))
        if not self._checked[rows].all():
            counts, checksums = self.n_regions[rows].tolist(), self._checksums[rows].tolist()
            self._rows.check(first, features, boxes, counts, checksums)
            self._checked[rows] = True


def _runs(rows: NDArray[np.int64], longest: int = 4) -> Iterator[tuple[int, int]]:
    """(start, stop) of runs of consecutive rows, short enough to stay in the CPU's cache."""
    start = 0
    for at in range(1, len(rows) + 1):
        if at == len(rows) or rows[at] != rows[at - 1] + 1 or at - start == longest:
            yield start, at
            start = at


class FeatureWriter:
    """Writes a store beside `path` and moves the file to `path` when every row is written.

    Without a `fingerprint`, a failure removes the unfinished file. With a fingerprint, the file
    stays, even after a kill, and the next writer with the same fingerprint continues: `done` marks
    the rows that are written and undamaged. A file with another fingerprint is discarded. The
    finished bytes do not depend on the interruptions.

    Args:
        path: the store. An earlier store at `path` stays until the new one is finished.
        image_ids: one unique id for each row.
        max_regions, width: R and F.
        dtype: "float16", or "uint8" for pixels.
        fingerprint: identifies the whole input.

    Raises:
        DataError: ids occur twice, a row has the wrong width or NaN, or a row is missing.
        StorageError: the disk is full. All space is reserved at the start.
    """

    def __init__(
        self,
        path: Path,
        image_ids: Sequence[str],
        *,
        max_regions: int,
        width: int,
        dtype: str = "float16",
        boxes: bool = False,
        attributes: Mapping[str, str] | None = None,
        fingerprint: str | None = None,
    ) -> None:
        layout.check_ids(path, image_ids)
        self.path = path
        self._fingerprint = fingerprint
        self._partial = partial_path(path)
        self._mark = path.with_name(path.name + ".fingerprint.partial")
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not self._resumable():
                self._create(image_ids, max_regions, width, dtype, boxes, attributes or {})
        self._rows = RowFile(self._partial, "r+b", reported=path)
        self.done = self._rows.written()
        """(n,) True for the rows that are written."""

    def __enter__(self) -> FeatureWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._rows.close()
            if self._fingerprint is None or kind is None:
                self._discard()

    def rows_left(self) -> list[int]:
        """The rows that are not written yet. A message says how many an earlier run finished."""
        rows: list[int] = np.flatnonzero(~self.done).tolist()
        if finished := len(self.done) - len(rows):
            total = len(self.done)
            say(f"{self.path}: {finished} of {total} images are finished from an earlier run")
        return rows

    def write(self, row: int, features: NDArray[Any], boxes: NDArray[Any] | None = None) -> None:
        """Write the k regions of image `row`: features (k, F), and boxes (k, 4) or None."""
        padded, padded_boxes = self._rows.padded(row, features, boxes)
        n_regions, image_id = len(features), self._rows.layout.image_ids[row]
        checksum = layout.row_checksum(padded[0], padded_boxes, n_regions, image_id)
        with storage_errors(self.path):
            self._rows.put("features", row, padded)
            if padded_boxes is not None:
                self._rows.put("boxes", row, padded_boxes)
            self._rows.put("checksum", row, np.array([checksum], np.uint64))
            # This comes last: a row counts as written when it has regions.
            self._rows.put("n_regions", row, np.array([n_regions], np.int32))
        self.done[row] = True

    def _resumable(self) -> bool:
        """Whether there is an unfinished file with the same fingerprint."""
        if self._fingerprint is None or not (self._mark.is_file() and is_own(self._partial)):
            return False
        return self._mark.read_bytes() == self._fingerprint.encode()

    def _create(
        self,
        image_ids: Sequence[str],
        max_regions: int,
        width: int,
        dtype: str,
        boxes: bool,
        attributes: Mapping[str, str],
    ) -> None:
        self._discard()
        try:
            # Space is reserved before and after `create`: HDF5 crashes on a full disk, and it
            # empties the file first.
            longest = max(len(image_id.encode()) for image_id in image_ids)
            region_bytes = layout.FEATURES[dtype].itemsize * width + (16 if boxes else 0)
            row_bytes = max_regions * region_bytes + 12 + longest
            layout.reserve(self._partial, len(image_ids) * row_bytes + _HEADROOM)
            layout.create(self._partial, image_ids, max_regions, width, dtype, boxes, attributes)
            layout.reserve(self._partial, self._partial.stat().st_size)
            if self._fingerprint is not None:
                self._mark.write_bytes(self._fingerprint.encode())
        except BaseException:
            self._discard()
            raise

    def _finish(self) -> None:
        missing = np.flatnonzero(~self.done)
        if missing.size:
            raise self._rows.fault(
                int(missing[0]), f"no features ({missing.size} images have none)"
            )
        with storage_errors(self.path):
            self._rows.sync()
            move_into_place(self._partial, self.path)

    def _discard(self) -> None:
        remove(self._mark)
        remove(self._partial)
