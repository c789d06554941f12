"""Rows of a feature store's file, read and written at their places (see `layout.py`)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manymatch.features.layout import Layout, all_finite, inspect, row_checksum
from manymatch.system.errors import DataError

Features = NDArray[Any]
"""float16, or uint8 of pixels."""
Boxes = NDArray[np.float32] | None


class RowFile:
    """The bytes of a store. Holds no HDF5 state: safe in threads and in forked processes."""

    def __init__(self, path: Path, mode: Literal["rb", "r+b"]) -> None:
        self.path = path
        self.layout: Layout = inspect(path)
        self._file = path.open(mode, buffering=0)

    def close(self) -> None:
        self._file.close()

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def fill(self, name: str, row: int, out: NDArray[Any]) -> None:
        """Read dataset `name` from `row` on into all of `out`, whose first axis is rows."""
        at, view = self._place(name, row, out)
        while view:
            count = os.preadv(self._file.fileno(), [view], at)
            if count == 0:
                raise DataError(f"{self.path}: cut off; remove it and run the stage 'features'")
            view, at = view[count:], at + count

    def put(self, name: str, row: int, values: NDArray[Any]) -> None:
        """Write `values`, whose first axis is rows, into dataset `name` from `row` on."""
        at, view = self._place(name, row, values)
        while view:
            count = os.pwrite(self._file.fileno(), view, at)
            view, at = view[count:], at + count

    def column(self, name: Literal["n_regions", "checksum"]) -> NDArray[Any]:
        """The whole of a dataset with one number a row."""
        kind = np.int32 if name == "n_regions" else np.uint64
        out = np.empty(len(self.layout.image_ids), kind)
        self.fill(name, 0, out)
        return out

    def empty(self, count: int) -> tuple[Features, Boxes]:
        """Room for `count` rows: features (count, R, F), boxes (count, R, 4) if the store has."""
        regions, width = self.layout.max_regions, self.layout.width
        boxes = np.empty((count, regions, 4), np.float32) if self.layout.has_boxes else None
        return np.empty((count, regions, width), self.layout.dtype), boxes

    def check(
        self,
        first: int,
        features: Features,
        boxes: Boxes,
        n_regions: Iterable[int],
        checksums: Iterable[int],
    ) -> None:
        """A `DataError` that names the image if the rows from `first` on, just read, are not
        what was written, or hold what must never be written."""
        for at, (count, checksum) in enumerate(zip(n_regions, checksums, strict=True)):
            image_id = self.layout.image_ids[first + at]
            row_boxes = None if boxes is None else boxes[at]
            if row_checksum(features[at], row_boxes, count, image_id) != checksum:
                raise self._fault(
                    first + at,
                    "wrong checksum, the file is damaged; remove it and run the stage 'features'",
                )
        if not all_finite(features):
            bad = next(at for at, row in enumerate(features) if not all_finite(row))
            raise self._fault(first + bad, "features hold NaN or infinity; extract them again")

    def _fault(self, row: int, fault: str) -> DataError:
        return DataError(f"{self.path}: image '{self.layout.image_ids[row]}': {fault}")

    def _place(self, name: str, row: int, values: NDArray[Any]) -> tuple[int, memoryview]:
        row_bytes = values.nbytes // len(values)
        view = values.reshape(-1).view(np.uint8).data
        return self.layout.offsets[name] + row * row_bytes, view
