"""Reading and writing feature stores (`layout.py` says what they look like inside).

    with FeatureWriter(path, image_ids, max_regions=36, width=2048) as writer:
        writer.write(0, features)                 # (k, F), k <= 36
        ...
    with FeatureStore(path) as store:
        features, n_regions, boxes = store.read([5, 0, 7])

Writer and reader check every row: widths, NaN and infinities, and a checksum that finds silent
damage.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from manymatch.features import layout
from manymatch.features.rows import Boxes, Features, RowFile
from manymatch.system.errors import DataError
from manymatch.system.files import move_into_place, partial_path, remove, storage_errors

_HEADROOM = 2**16
"""Bytes for HDF5's own structures, on the safe side."""
Rows = tuple[Features, NDArray[np.int32], Boxes]
"""features (k, R, F) float16 or uint8, n_regions (k,), boxes (k, R, 4) float32 or None."""


class FeatureStore:
    """A finished store, opened for reading; never more of it in memory than the rows asked for.

    Safe to use from several threads, forked workers and processes at once: reads are positional,
    and stores are replaced, never changed. A row is checked when it is first read.

    Raises:
        DataError: the file is missing, cut off, not a store, or a row read from it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows = RowFile(path, "rb")
        self.image_ids = self._rows.layout.image_ids
        """In row order."""
        self.n_regions: NDArray[np.int32] = self._rows.column("n_regions")
        self._checksums = self._rows.column("checksum")
        self._checked = np.zeros(len(self), np.bool_)
        if self.n_regions.min() < 1 or self.n_regions.max() > self.max_regions:
            self.close()
            raise DataError(f"{path}: the store is unfinished or damaged; extract it again")

    def __enter__(self) -> FeatureStore:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._rows.close()

    def __len__(self) -> int:
        return len(self.image_ids)

    @property
    def width(self) -> int:
        """F, the length of a feature vector."""
        return self._rows.layout.width

    @property
    def max_regions(self) -> int:
        """R, the most regions an image has; the others are padded with zeros to it."""
        return self._rows.layout.max_regions

    @property
    def dtype(self) -> Literal["float16", "uint8"]:
        """Of the features: uint8 if they are pixels."""
        return "uint8" if self._rows.layout.dtype == np.uint8 else "float16"

    @property
    def has_boxes(self) -> bool:
        return self._rows.layout.has_boxes

    @property
    def attributes(self) -> dict[str, str]:
        """What made the features: backbone, weights_sha256, preprocessing, ..."""
        return self._rows.layout.attributes

    @property
    def sha256(self) -> str:
        """Of all that is in it: its checksums stand for the rows."""
        facts = [self.max_regions, self.width, self.dtype, self.has_boxes, self.attributes]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        digest.update(self._checksums.tobytes())
        return digest.hexdigest()

    def read(self, rows: Sequence[int] | NDArray[np.integer[Any]]) -> Rows:
        """The given rows, in the given order: see `Rows`."""
        wanted = np.asarray(rows, dtype=np.int64)
        if wanted.size and not (wanted.min() >= 0 and wanted.max() < len(self)):
            raise IndexError(f"{self.path}: rows must be in 0..{len(self) - 1}")
        features, boxes = self._rows.empty(len(wanted))
        for start, stop in _runs(wanted):
            first = int(wanted[start])
            places = features[start:stop], None if boxes is None else boxes[start:stop]
            self._fill(first, *places)
            self._check(first, *places)
        return features, self.n_regions[wanted], boxes

    def blocks(self, size: int = 32) -> Iterator[tuple[range, Rows]]:
        """All rows in order, `size` at a time; a thread reads the next while one is checked.

        It is one thread that reads: reads that overtake each other look random to the system,
        which then does not read ahead.
        """
        coming: deque[tuple[range, Features, Boxes, Future[None]]] = deque()
        with ThreadPoolExecutor(1) as reader:
            for start in range(0, len(self), size):
                part = range(start, min(start + size, len(self)))
                features, boxes = self._rows.empty(len(part))
                filled = reader.submit(self._fill, start, features, boxes)
                coming.append((part, features, boxes, filled))
                if len(coming) > 1:
                    yield self._block(*coming.popleft())
            yield self._block(*coming.popleft())

    def _block(
        self, part: range, features: Features, boxes: Boxes, filled: Future[None]
    ) -> tuple[range, Rows]:
        filled.result()
        self._check(part.start, features, boxes)
        return part, (features, self.n_regions[part.start : part.stop], boxes)

    def _fill(self, first: int, features: Features, boxes: Boxes) -> None:
        """Read the rows from `first` on into all of `features` and `boxes`."""
        self._rows.fill("features", first, features)
        if boxes is not None:
            self._rows.fill("boxes", first, boxes)

    def _check(self, first: int, features: Features, boxes: Boxes) -> None:
        """Check the rows from `first` on, unless they were checked before."""
        rows = slice(first, first + len(features))
        if not self._checked[rows].all():
            counts, checksums = self.n_regions[rows].tolist(), self._checksums[rows].tolist()
            self._rows.check(first, features, boxes, counts, checksums)
            self._checked[rows] = True

    def verify(self) -> None:
        """Read everything; the first damaged row is a `DataError`."""
        for _ in self.blocks():
            pass


def _runs(rows: NDArray[np.int64], longest: int = 4) -> Iterator[tuple[int, int]]:
    """(start, stop) of stretches of consecutive rows, short enough to stay in the CPU's cache."""
    start = 0
    for at in range(1, len(rows) + 1):
        if at == len(rows) or rows[at] != rows[at - 1] + 1 or at - start == longest:
            yield start, at
            start = at


class FeatureWriter:
    """Writes a store next to `path` and moves it into place once every row is there.

    Without `fingerprint` a failure leaves nothing behind. With one the unfinished file stays, and
    the next writer with the same fingerprint goes on from it, also after a kill: `done` tells the
    rows that are there already. A row found damaged counts as not done; state with another
    fingerprint is discarded. The finished bytes do not depend on the interruptions.

    Args:
        path: the store; an earlier one stays whole until the new one is finished.
        image_ids: one for each row, unique.
        max_regions, width: R and F.
        dtype: of the features: "float16", or "uint8" for pixels.
        boxes: whether each row comes with boxes.
        attributes: what made the features.
        fingerprint: identifies the whole input, to resume by.

    Raises:
        DataError: duplicate ids, a row of wrong width or with NaN, a row missing at the end.
        StorageError: the disk is full; found at the start, where all space is reserved.
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
        _check_ids(path, image_ids)
        self.path = path
        self._fingerprint = fingerprint
        self._partial = partial_path(path)
        self._mark = path.with_name(path.name + ".fingerprint.partial")
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not self._resumable():
                self._create(image_ids, max_regions, width, dtype, boxes, attributes or {})
        self._rows = RowFile(self._partial, "r+b")
        self.done = _written(self._rows)
        """(n,) which rows are there."""

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

    def write(self, row: int, features: NDArray[Any], boxes: NDArray[Any] | None = None) -> None:
        """Write the k regions of image `row`: features (k, F), boxes (k, 4) if the store has."""
        padded, padded_boxes = self._padded(row, features, boxes)
        n_regions, image_id = len(features), self._rows.layout.image_ids[row]
        checksum = layout.row_checksum(padded[0], padded_boxes, n_regions, image_id)
        with storage_errors(self.path):
            self._rows.put("features", row, padded)
            if padded_boxes is not None:
                self._rows.put("boxes", row, padded_boxes)
            self._rows.put("checksum", row, np.array([checksum], np.uint64))
            # Last: a row with regions is a row that is there.
            self._rows.put("n_regions", row, np.array([n_regions], np.int32))
        self.done[row] = True

    def _padded(
        self, row: int, features: NDArray[Any], boxes: NDArray[Any] | None
    ) -> tuple[Features, Boxes]:
        """The row as it stands in the file, (1, R, F) and (1, R, 4)."""
        padded, padded_boxes = self._rows.empty(1)
        padded[:] = 0
        self._check_shapes(row, features, boxes)
        with np.errstate(over="ignore"):  # too great for float16: found as infinity below
            padded[0, : len(features)] = features
        if not layout.all_finite(padded):
            raise self._fault(row, "features hold NaN, infinity or more than float16 can hold")
        if padded_boxes is not None and boxes is not None:
            padded_boxes[:] = 0
            padded_boxes[0, : len(boxes)] = boxes
        return padded, padded_boxes

    def _check_shapes(self, row: int, features: NDArray[Any], boxes: NDArray[Any] | None) -> None:
        regions, width = self._rows.layout.max_regions, self._rows.layout.width
        if self._rows.layout.dtype == np.uint8 and features.dtype != np.uint8:
            raise self._fault(row, f"features are {features.dtype}, the store is one of uint8")
        if features.ndim != 2 or features.shape[1] != width:
            raise self._fault(row, f"features are {features.shape}, the store has width {width}")
        if not 1 <= len(features) <= regions:
            raise self._fault(row, f"{len(features)} regions, the store has room for 1..{regions}")
        expected = (len(features), 4) if self._rows.layout.has_boxes else None
        if (None if boxes is None else boxes.shape) != expected:
            found = "missing" if boxes is None else f"{boxes.shape}"
            raise self._fault(row, f"boxes are {found}, the store expects {expected or 'none'}")

    def _fault(self, row: int, fault: str) -> DataError:
        return DataError(f"{self.path}: image '{self._rows.layout.image_ids[row]}': {fault}")

    def _resumable(self) -> bool:
        """Whether an unfinished file for the same fingerprint is there."""
        if self._fingerprint is None or not (self._mark.is_file() and self._partial.is_file()):
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
            # Before and after: HDF5 itself crashes on a full disk, and begins the file anew.
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
            raise self._fault(int(missing[0]), f"no features ({missing.size} images have none)")
        with storage_errors(self.path):
            self._rows.sync()
            move_into_place(self._partial, self.path)

    def _discard(self) -> None:
        remove(self._mark)
        remove(self._partial)


def _check_ids(path: Path, image_ids: Sequence[str]) -> None:
    if not image_ids:
        raise DataError(f"{path}: no images to write features of")
    image_id, count = Counter(image_ids).most_common(1)[0]
    if count > 1:
        raise DataError(f"{path}: image id '{image_id}' is there {count} times; ids must be unique")
    if "" in image_ids or any("\0" in image_id for image_id in image_ids):
        raise DataError(f"{path}: an image id is empty or holds a null character")


def _written(rows: RowFile) -> NDArray[np.bool_]:
    """(n,) True for the rows that an earlier run has written in full and undamaged."""
    n_regions, checksums = rows.column("n_regions"), rows.column("checksum")
    done = n_regions > 0
    features, boxes = rows.empty(1)
    for row in np.flatnonzero(done).tolist():
        rows.fill("features", row, features)
        if boxes is not None:
            rows.fill("boxes", row, boxes)
        try:
            rows.check(row, features, boxes, [int(n_regions[row])], [int(checksums[row])])
        except DataError:
            done[row] = False
    return done
