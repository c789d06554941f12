"""The rows of a feature store: reading, writing and checking them (`layout.py` says where)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manymatch.features.layout import Layout, all_finite, inspect, row_checksum
from manymatch.util.errors import DataError

Features = NDArray[Any]
"""float16, or uint8 for pixels."""
Boxes = NDArray[np.float32] | None


class RowFile:
    """The bytes of a store. Without HDF5 state, so that threads and forked processes can use it."""

    def __init__(
        self, path: Path, mode: Literal["rb", "r+b"], reported: Path | None = None
    ) -> None:
        """`reported`: the path in messages, if it is not `path`."""
        self.path = reported or path
        self.layout: Layout = inspect(path)
        self._file = path.open(mode, buffering=0)

    def close(self) -> None:
        self._file.close()

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def fill(self, name: str, row: int, out: NDArray[Any]) -> None:
        """Read rows of the dataset `name`, from `row` on, until `out` (rows, ...) is full."""
        at, view = self._bytes_of(name, row, out)
        while view:
            count = os.preadv(self._file.fileno(), [view], at)
            if count == 0:
                raise DataError(
                    f"{self.path}: the file is cut off. Remove it and run the stage 'features'"
                )
            view, at = view[count:], at + count

    def put(self, name: str, row: int, values: NDArray[Any]) -> None:
        """Write `values` (rows, ...) to the dataset `name`, from `row` on."""
        at, view = self._bytes_of(name, row, values)
        while view:
            count = os.pwrite(self._file.fileno(), view, at)
            view, at = view[count:], at + count

    def column(self, name: Literal["n_regions", "checksum"]) -> NDArray[Any]:
        """A whole dataset with one number for each row."""
        kind = np.int32 if name == "n_regions" else np.uint64
        out = np.empty(len(self.layout.image_ids), kind)
        self.fill(name, 0, out)
        return out

    def empty(self, count: int) -> tuple[Features, Boxes]:
        """Uninitialised arrays for `count` rows: features (count, R, F), boxes (count, R, 4)."""
        regions, width = self.layout.max_regions, self.layout.width
        boxes = np.empty((count, regions, 4), np.float32) if self.layout.has_boxes else None
        return np.empty((count, regions, width), self.layout.dtype), boxes

    def padded(
        self, row: int, features: NDArray[Any], boxes: NDArray[Any] | None
    ) -> tuple[Features, Boxes]:
        """The regions of image `row` as the file holds them: (1, R, F) and (1, R, 4) or None.

        Raises:
            DataError: the shapes do not fit, or a feature is NaN, infinite or too large.
        """
        self._check_shapes(row, features, boxes)
        padded, padded_boxes = self.empty(1)
        padded[:] = 0
        with np.errstate(over="ignore"):  # values too large for float16 become infinite
            padded[0, : len(features)] = features
        if not all_finite(padded):
            raise self.fault(row, "features hold NaN, infinity or more than float16 can hold")
        if padded_boxes is not None and boxes is not None:
            padded_boxes[:] = 0
            padded_boxes[0, : len(boxes)] = boxes
        return padded, padded_boxes

    def _check_shapes(self, row: int, features: NDArray[Any], boxes: NDArray[Any] | None) -> None:
        regions, width = self.layout.max_regions, self.layout.width
        if self.layout.dtype == np.uint8 and features.dtype != np.uint8:
            raise self.fault(row, f"features are {features.dtype}, but the store holds uint8")
        if features.ndim != 2 or features.shape[1] != width:
            raise self.fault(row, f"features are {features.shape}, but the store has width {width}")
        if not 1 <= len(features) <= regions:
            raise self.fault(row, f"{len(features)} regions, the store has room for 1..{regions}")
        expected = (len(features), 4) if self.layout.has_boxes else None
        if (None if boxes is None else boxes.shape) != expected:
            shape = "missing" if boxes is None else f"{boxes.shape}"
            raise self.fault(row, f"boxes are {shape}, but the store expects {expected or 'none'}")

    def written(self) -> NDArray[np.bool_]:
        """(n,) True for the rows that are complete and undamaged."""
        n_regions, checksums = self.column("n_regions"), self.column("checksum")
        written = n_regions > 0
        features, boxes = self.empty(1)
        for row in np.flatnonzero(written).tolist():
            self.fill("features", row, features)
            if boxes is not None:
                self.fill("boxes", row, boxes)
            try:
                self.check(row, features, boxes, [int(n_regions[row])], [int(checksums[row])])
            except DataError:
                written[row] = False
        return written

    def check(
        self,
        first: int,
        features: Features,
        boxes: Boxes,
        n_regions: Iterable[int],
        checksums: Iterable[int],
    ) -> None:
        """Check the rows from `first` on, after reading them.

        Raises:
            DataError: a checksum is wrong, or a feature is NaN or infinite. Names the image.
        """
        for at, (count, checksum) in enumerate(zip(n_regions, checksums, strict=True)):
            image_id = self.layout.image_ids[first + at]
            row_boxes = None if boxes is None else boxes[at]
            if row_checksum(features[at], row_boxes, count, image_id) != checksum:
                raise self.fault(
                    first + at,
                    "wrong checksum, the file is damaged. Remove it and run the stage 'features'",
                )
        if not all_finite(features):
            bad = next(at for at, row in enumerate(features) if not all_finite(row))
            raise self.fault(
                first + bad, "features hold NaN or infinity. Run the stage 'features' again"
            )

    def fault(self, row: int, fault: str) -> DataError:
        """The error about a `fault` of image `row`."""
        return DataError(f"{self.path}: image '{self.layout.image_ids[row]}': {fault}")

    def _bytes_of(self, name: str, row: int, values: NDArray[Any]) -> tuple[int, memoryview]:
        """Where `row` begins in the file, and the bytes of `values`."""
        row_bytes = values.nbytes // len(values)
        view = values.reshape(-1).view(np.uint8).data
        return self.layout.offsets[name] + row * row_bytes, view
