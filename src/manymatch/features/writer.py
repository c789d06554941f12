"""Writing feature stores, row by row and with resumption after a kill.

    with FeatureWriter(path, Layout(image_ids, max_regions=36, width=2048)) as writer:
        writer.write(0, features)                 # (k, F), k <= 36
        ...

HDF5 makes the file with all its chunks, which are zero, and closes the file. The rows then go into
the chunks without HDF5, each with its checksum. So a kill cannot damage HDF5's own structures, and
the finished bytes do not depend on the order of the rows.
"""

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from manymatch.features import layout
from manymatch.features.layout import CHECKSUM_BYTES, FEATURES, Layout, checksum
from manymatch.util.errors import DataError
from manymatch.util.files import is_own, move_into_place, partial_path, remove, storage_errors
from manymatch.util.progress import say

_HEADROOM = 2**16
"""Bytes for HDF5's own structures, besides those of each row; an upper bound."""
_ROW_OVERHEAD = 64


class FeatureWriter:
    """Writes a store beside `path` and moves the file to `path` when every row is written.

    Without a `fingerprint`, a failure removes the unfinished file. With a fingerprint, the file
    stays, even after a kill, and the next writer with the same fingerprint continues: `done` marks
    the rows that are written and undamaged. A file with another fingerprint is discarded. The
    finished bytes do not depend on the interruptions.

    Args:
        path: the store. An earlier store at `path` stays until the new one is finished.
        fingerprint: identifies the whole input.

    Raises:
        DataError: ids occur twice, a row has the wrong width or NaN, or a row is missing.
        StorageError: the disk is full. All space is reserved at the start.
    """

    def __init__(self, path: Path, content: Layout, fingerprint: str | None = None) -> None:
        layout.check_ids(path, content.image_ids)
        self._layout, self._dtype = content, FEATURES[content.dtype]
        self._counts = np.zeros(len(content.image_ids), np.dtype("<i4"))
        self._sizes = {"features": content.max_regions * content.width * self._dtype.itemsize}
        """Bytes of the rows of each dataset."""
        if content.has_boxes:
            self._sizes["boxes"] = content.max_regions * 16
        self.path = path
        self._fingerprint = fingerprint
        self._partial = partial_path(path)
        self._mark = path.with_name(path.name + ".fingerprint.partial")
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            resumed = (
                fingerprint is not None
                and is_own(self._partial)
                and self._mark.is_file()
                and self._mark.read_bytes() == fingerprint.encode()
            )
            if not resumed:
                self._create()
            with h5py.File(self._partial, "r", locking=False) as file:
                names = [*self._sizes, "n_regions"]
                self._places = {name: layout.chunk_places(file, name) for name in names}
            self._file = self._partial.open("r+b", buffering=0)
        if resumed:
            self._find_written()
        self.done = self._counts > 0
        """(n,) True for the rows that are written."""

    def __enter__(self) -> "FeatureWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._file.close()
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
        self._check(row, features, boxes)
        stored = self._layout
        padded = np.zeros((stored.max_regions, stored.width), self._dtype)
        with np.errstate(over="ignore"):  # values too large for float16 become infinite
            padded[: len(features)] = features
        if not layout.all_usable(padded):
            raise self._fault(row, layout.UNUSABLE)
        with storage_errors(self.path):
            self._put("features", row, padded)
            if boxes is not None:
                padded_boxes = np.zeros((stored.max_regions, 4), np.dtype("<f4"))
                padded_boxes[: len(boxes)] = boxes
                self._put("boxes", row, padded_boxes)
            self._counts[row] = len(features)
            # This comes last: a row counts as written when it has regions.
            place = int(self._places["n_regions"][0]) + row * self._counts.itemsize
            self._write(place, self._counts[row].tobytes())
        self.done[row] = True

    def _check(self, row: int, features: NDArray[Any], boxes: NDArray[Any] | None) -> None:
        stored = self._layout
        regions, width, fault = stored.max_regions, stored.width, ""
        expected = (len(features), 4) if stored.has_boxes else None
        if stored.dtype == "uint8" and features.dtype != np.uint8:
            fault = f"features are {features.dtype}, but the store holds uint8"
        elif features.ndim != 2 or features.shape[1] != width:
            fault = f"features are {features.shape}, but the store has width {width}"
        elif not 1 <= len(features) <= regions:
            fault = f"{len(features)} regions, the store has room for 1..{regions}"
        elif (None if boxes is None else boxes.shape) != expected:
            shape = "missing" if boxes is None else f"{boxes.shape}"
            fault = f"boxes are {shape}, but the store expects {expected or 'none'}"
        if fault:
            raise self._fault(row, fault)

    def _put(self, name: str, row: int, values: NDArray[Any]) -> None:
        data = values.reshape(-1).view(np.uint8).data
        self._write(int(self._places[name][row]), bytes(data) + checksum(data))

    def _write(self, place: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            count = os.pwrite(self._file.fileno(), view, place)
            view, place = view[count:], place + count

    def _find_written(self) -> None:
        """Read from an unfinished file which rows are complete and undamaged."""
        read, place = self._file.fileno(), int(self._places["n_regions"][0])
        counts = np.frombuffer(os.pread(read, self._counts.nbytes, place), self._counts.dtype)
        for row in np.flatnonzero(counts).tolist():
            chunks = (
                os.pread(read, size + CHECKSUM_BYTES, int(self._places[name][row]))
                for name, size in self._sizes.items()
            )
            if all(checksum(chunk[:-4]) == chunk[-4:] for chunk in chunks):
                self._counts[row] = counts[row]

    def _create(self) -> None:
        self._discard()
        try:
            ids = self._layout.image_ids
            longest = max(len(image_id.encode()) for image_id in ids)
            row_bytes = sum(self._sizes.values()) + 4 + longest + _ROW_OVERHEAD
            # HDF5 crashes on a full disk, so the space is tried before HDF5 writes the chunks.
            with self._partial.open("ab") as file:
                os.posix_fallocate(file.fileno(), 0, len(ids) * row_bytes + _HEADROOM)
            layout.create(self._partial, self._layout)
            if self._fingerprint is not None:
                self._mark.write_bytes(self._fingerprint.encode())
        except BaseException:
            self._discard()
            raise

    def _finish(self) -> None:
        missing = np.flatnonzero(~self.done)
        if missing.size:
            raise self._fault(int(missing[0]), f"no features ({missing.size} images have none)")
        with storage_errors(self.path):
            data = self._counts.tobytes()
            self._write(int(self._places["n_regions"][0]), data + checksum(data))
            os.fsync(self._file.fileno())
            move_into_place(self._partial, self.path)

    def _fault(self, row: int, fault: str) -> DataError:
        return DataError(f"{self.path}: image '{self._layout.image_ids[row]}': {fault}")

    def _discard(self) -> None:
        remove(self._mark)
        remove(self._partial)
