"""Reading feature stores (`layout.py` describes the file, `writer.py` writes it).

    with FeatureStore(path) as store:
        features, n_regions, boxes = store.read([5, 0, 7])

HDF5 compares the checksum of a row whenever it reads the row. The reader also refuses NaN,
infinity and more than float16 can hold.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from manymatch.features import layout
from manymatch.util import hdf5_file
from manymatch.util.errors import DataError, first_line
from manymatch.util.prefetch import map_ahead

Features = NDArray[Any]
"""float16, uint8 for pixels, or float32 for vectors that are compared as they are."""
Boxes = NDArray[np.float32] | None
Rows = tuple[Features, NDArray[np.int32], Boxes]
"""features (k, R, F), n_regions (k,), boxes (k, R, 4) float32 or None."""
_REMEDY = "Remove it and run the stage 'features'"


class FeatureStore:
    """A finished store, opened for reading. Only the rows that are read are in memory.

    Several threads, forked workers and processes can read at the same time: a store is replaced,
    never changed.

    Raises:
        DataError: the file is missing, cut off or not a store, or a row is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._faults(), contextlib.ExitStack() as stack:
            self._file = stack.enter_context(hdf5_file.open_hdf5(path))
            stored = layout.inspect(self._file, path)
            self.n_regions: NDArray[np.int32] = self._file["n_regions"][:]
            if self.n_regions.min() < 1 or self.n_regions.max() > stored.max_regions:
                raise DataError(f"{path}: the store is unfinished or damaged{layout.AGAIN}")
            self._close = stack.pop_all().close
        self.image_ids = list(stored.image_ids)
        """In row order."""
        self.width, self.max_regions = stored.width, stored.max_regions
        """F and R. Images with fewer than R regions are padded with zeros."""
        self.has_boxes = stored.has_boxes
        self.dtype = stored.dtype
        """The type of the features, a name in `layout.FEATURES`."""
        self.attributes = dict(stored.attributes)
        """How the features were made: backbone, weights_sha256, preprocessing, ..."""
        self._finite = np.zeros(len(self), np.bool_)

    def __enter__(self) -> "FeatureStore":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._close()

    def __len__(self) -> int:
        return len(self.image_ids)

    @property
    def sha256(self) -> str:
        """Hash of the whole content. If all rows have checksums in the file, these stand for the
        rows."""
        facts = [self.max_regions, self.width, self.dtype, self.has_boxes, self.attributes]
        digest = hashlib.sha256(json.dumps([facts, self.image_ids], sort_keys=True).encode())
        digest.update(self.n_regions.tobytes())
        with self.path.open("rb", buffering=0) as file:
            for name in ("features", "boxes")[: 1 + self.has_boxes]:
                if not layout.has_row_checksums(self._file[name]):
                    for row in range(len(self)):
                        digest.update(self._rows(name, np.array([row])).tobytes())
                    continue
                size = self._file[name].nbytes // len(self)
                for place in layout.chunk_places(self._file, name).tolist():
                    digest.update(os.pread(file.fileno(), layout.CHECKSUM_BYTES, place + size))
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
        features = self._rows("features", indices)
        boxes = self._rows("boxes", indices) if self.has_boxes else None
        if not self._finite[indices].all():
            if not layout.all_usable(features):
                bad = next(at for at, row in enumerate(features) if not layout.all_usable(row))
                self._refuse(indices[bad], layout.UNUSABLE + layout.AGAIN)
            self._finite[indices] = True
        return features, self.n_regions[indices], boxes

    def blocks(self, size: int = 32) -> Iterator[tuple[range, Rows]]:
        """All rows in order, `size` at a time. A thread reads the next block meanwhile."""
        starts = range(0, len(self), size)
        parts = (range(start, min(start + size, len(self))) for start in starts)
        with contextlib.closing(map_ahead(self.read, parts, depth=1)) as blocks:
            for start, rows in zip(starts, blocks, strict=True):
                yield range(start, start + len(rows[0])), rows

    def _rows(self, name: str, indices: NDArray[np.int64]) -> Features:
        """Rows of a dataset. h5py's own indexing takes 50% longer."""
        dataset = self._file[name]
        out = np.empty((len(indices), *dataset.shape[1:]), dataset.dtype)
        space, one = dataset.id.get_space(), h5py.h5s.create_simple(dataset.shape[1:])
        shape = (1, *dataset.shape[1:])
        for at, row in enumerate(indices.tolist()):
            space.select_hyperslab((row, 0, 0), shape)
            try:
                dataset.id.read(one, space, out[at])
            except OSError:
                self._refuse(row, f"wrong checksum or cut off, the file is damaged. {_REMEDY}")
        return out

    def _refuse(self, row: int, fault: str) -> None:
        raise DataError(f"{self.path}: image '{self.image_ids[row]}': {fault}")

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise DataError(
                f"{self.path}: no such feature store. Run the stage 'features'"
            ) from None
        except hdf5_file.FAULTS as error:
            raise DataError(
                f"{self.path}: damaged or not an HDF5 file ({first_line(error)}). {_REMEDY}"
            ) from None
