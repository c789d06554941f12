"""The HDF5 layout of a feature store, and the checks that a file with it must pass.

n images, R = most regions of an image, F = feature width. All datasets are contiguous, so that a
row begins at `offset + row * row_bytes` and is read and written without HDF5: a reader is a plain
`pread`, and a writer that is killed cannot damage HDF5's own structures.

    features   (n, R, F) float16   zero where padded; uint8 in a store of pixels
    n_regions  (n,) int32          0 = the row is not written yet; never in a finished store
    boxes      (n, R, 4) float32   x1 y1 x2 y2 in 0..1, zero where padded; optional
    checksum   (n,) uint64         `row_checksum`
    image_id   (n,) UTF-8 strings of fixed length
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xxhash
from numpy.typing import NDArray

from manymatch.util import hdf5_file
from manymatch.util.errors import DataError, first_line

FORMAT, VERSION = "manymatch-features", 1
_AGAIN = ". Run the stage 'features' again"
_LIBRARY = ("v110", "v110")
"""A fixed version of the format, so that equal content gives equal bytes. This version has
checksums for HDF5's own structures."""
_DTYPES = {"n_regions": "<i4", "boxes": "<f4", "checksum": "<u8"}
FEATURES: dict[str, np.dtype[Any]] = {"float16": np.dtype("<f2"), "uint8": np.dtype("u1")}
"""The possible types of features by name."""


@dataclass(frozen=True)
class Layout:
    """The positions of the rows of a store, and its attributes."""

    image_ids: list[str]
    max_regions: int
    width: int
    dtype: np.dtype[Any]
    offsets: dict[str, int]  # dataset -> byte position of its row 0
    attributes: dict[str, str]

    @property
    def has_boxes(self) -> bool:
        return "boxes" in self.offsets


def row_checksum(
    features: NDArray[Any], boxes: NDArray[np.float32] | None, n_regions: int, image_id: str
) -> int:
    """XXH3-64 of a row, in this order: features (R, F), boxes (R, 4), n_regions (int32), id."""
    digest = xxhash.xxh3_64(features.data)
    if boxes is not None:
        digest.update(boxes.data)
    digest.update(n_regions.to_bytes(4, "little") + image_id.encode())
    return digest.intdigest()


def all_finite(values: NDArray[Any]) -> bool:
    """Whether no value is NaN or infinite. Ten times faster than `np.isfinite` for float16.

    Bytes are always finite. A float16 is NaN or infinite if all its exponent bits are ones. As
    integers, these patterns are the largest: as signed ones among the positive numbers, as unsigned
    ones among the negative numbers.
    """
    if values.dtype == np.uint8:
        return True
    bits = np.ascontiguousarray(values)
    return bool(bits.view(np.int16).max() < 0x7C00 and bits.view(np.uint16).max() < 0xFC00)


def check_ids(path: Path, image_ids: Sequence[str]) -> None:
    """Refuse to write a store to `path` unless the ids are distinct and HDF5 can hold them."""
    if not image_ids:
        raise DataError(f"{path}: there are no images to write features of")
    image_id, count = Counter(image_ids).most_common(1)[0]
    if count > 1:
        raise DataError(
            f"{path}: the image id '{image_id}' occurs {count} times. Ids must be unique"
        )
    if "" in image_ids or any("\0" in image_id for image_id in image_ids):
        raise DataError(f"{path}: an image id is empty or contains a null character")


def create(
    path: Path,
    image_ids: Sequence[str],
    max_regions: int,
    width: int,
    dtype: str,
    boxes: bool,
    attributes: Mapping[str, str],
) -> None:
    """Write an empty store to `path`: structure, image ids and attributes, but no rows."""
    shapes = {"features": (max_regions, width), "n_regions": (), "checksum": ()}
    kinds = {
        "features": FEATURES[dtype],
        **{name: np.dtype(kind) for name, kind in _DTYPES.items()},
    }
    if boxes:
        shapes["boxes"] = (max_regions, 4)
    with h5py.File(path, "w", libver=_LIBRARY) as file:
        described = {**attributes, "format": FORMAT, "version": str(VERSION)}
        for name, value in sorted(described.items()):
            encoded = value.encode()
            file.attrs.create(name, encoded, dtype=_fixed_string([encoded]))
        ids = [image_id.encode() for image_id in image_ids]
        data = np.array(ids, dtype=_fixed_string(ids))
        file.create_dataset("image_id", data=data, track_times=False)
        for name, shape in sorted(shapes.items()):
            _create_dataset(file, name, (len(image_ids), *shape), kinds[name])


def reserve(path: Path, size: int) -> None:
    """Allocate `size` bytes, so that a full disk is noticed before hours of work, not after."""
    with path.open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _fixed_string(values: Sequence[bytes]) -> np.dtype[Any]:
    """Strings of fixed length.

    Strings of variable length are on HDF5's global heap, which has no checksum. A damaged heap can
    make the library loop forever.
    """
    return h5py.string_dtype("utf-8", max(1, *map(len, values)))


def _create_dataset(
    file: h5py.File, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    """Create a contiguous dataset. Its position is fixed now, its bytes are written later."""
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_layout(h5py.h5d.CONTIGUOUS)
    settings.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    settings.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    settings.set_obj_track_times(False)
    kind = h5py.h5t.py_create(dtype)
    h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(shape), settings)


def inspect(path: Path) -> Layout:
    """The layout of the store at `path`. A damaged or foreign file is a `DataError`."""
    try:
        with hdf5_file.open_hdf5(path) as file:
            return _inspect(file, path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such feature store. Run the stage 'features'") from None
    except hdf5_file.FAULTS as error:
        reason = first_line(error)
        raise DataError(
            f"{path}: damaged or not an HDF5 file ({reason}). Remove it and run the stage "
            "'features'"
        ) from None


def _inspect(file: h5py.File, path: Path) -> Layout:
    attributes = {name: _attribute(file, name, path) for name in file.attrs}
    if attributes.pop("format", "") != FORMAT or attributes.pop("version", "") != str(VERSION):
        raise DataError(f"{path}: not a feature store of version {VERSION}{_AGAIN}")
    names = ["features", *(name for name in _DTYPES if name in file or name != "boxes")]
    offsets = {name: _offset(file, name, path) for name in [*names, "image_id"]}
    n, max_regions, width = _shape(file, names, path)
    image_ids = [value.decode() for value in file["image_id"][:]]
    if len(image_ids) != n or len(set(image_ids)) != n:
        raise DataError(f"{path}: image ids are missing or occur twice{_AGAIN}")
    return Layout(image_ids, max_regions, width, file["features"].dtype, offsets, attributes)


def _attribute(file: h5py.File, name: str, path: Path) -> str:
    if _is_fixed_string(file.attrs.get_id(name).dtype):
        return file.attrs[name].decode()
    raise DataError(f"{path}: attribute '{name}' is not a string of fixed length{_AGAIN}")


def _is_fixed_string(kind: np.dtype[Any]) -> bool:
    text = h5py.check_string_dtype(kind)
    return text is not None and text.length is not None


def _shape(file: h5py.File, names: list[str], path: Path) -> tuple[int, int, int]:
    """(n, R, F). All datasets must have matching shapes."""
    shape = file["features"].shape
    n, max_regions, width = shape if len(shape) == 3 else (0, 0, 0)
    expected = {
        "features": shape,
        "n_regions": (n,),
        "checksum": (n,),
        "boxes": (n, max_regions, 4),
    }
    for name in names:
        kinds = [np.dtype(_DTYPES[name])] if name in _DTYPES else [*FEATURES.values()]
        if file[name].shape != expected[name] or file[name].dtype not in kinds:
            stored = f"{file[name].dtype} {file[name].shape}"
            raise DataError(f"{path}: dataset '{name}' is {stored}, unlike in a feature store")
    if 0 in shape:
        raise DataError(f"{path}: the feature store is empty (features {shape})")
    return n, max_regions, width


def _offset(file: h5py.File, name: str, path: Path) -> int:
    """Where the dataset `name` begins. It must be in this file, contiguous and complete."""
    if name not in file:
        raise DataError(f"{path}: no dataset '{name}'; not a feature store{_AGAIN}")
    dataset = hdf5_file.member(file, name, f"{path}: dataset '{name}'")
    offset = dataset.id.get_offset() if isinstance(dataset, h5py.Dataset) else None
    if name == "image_id" and not _is_fixed_string(dataset.dtype):
        raise DataError(f"{path}: image ids are not strings of fixed length{_AGAIN}")
    if offset is None or dataset.chunks:
        raise DataError(f"{path}: dataset '{name}' is not contiguous{_AGAIN}")
    if offset + dataset.nbytes > path.stat().st_size:
        raise DataError(f"{path}: cut off inside dataset '{name}'{_AGAIN}")
    return int(offset)
