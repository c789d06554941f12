"""The HDF5 layout of a feature store, which any HDF5 tool reads and writes.

n images, R = most regions of an image, F = feature width. Each chunk has HDF5's Fletcher-32
checksum, which HDF5 compares when it reads the chunk.

    features   (n, R, F) float16   chunks (1, R, F); zero where padded; uint8 in a store of pixels,
                                   float32 in a store of vectors that are compared as they are
    boxes      (n, R, 4) float32   chunks (1, R, 4); x1 y1 x2 y2 in 0..1, as features; optional
    n_regions  (n,) int32          one chunk
    image_id   (n,) UTF-8 strings of fixed length, one chunk

HDF5's own structures have checksums, too, from version 1.10 of the format on. So a store needs no
seal.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
from numpy.typing import NDArray

from manymatch.util import hdf5_file
from manymatch.util.errors import DataError

FORMAT, VERSION = "manymatch-features", "2"
AGAIN = ". Run the stage 'features' again"
_LIBRARY = ("v110", "v110")
"""A fixed version of the format, so that equal content gives equal bytes."""
FeatureType = Literal["float16", "float32", "uint8"]
FEATURES: dict[FeatureType, np.dtype[Any]] = {
    "float16": np.dtype("<f2"),
    "float32": np.dtype("<f4"),
    "uint8": np.dtype("u1"),
}
"""The possible types of features by name."""
CHECKSUM_BYTES = 4
UNUSABLE = "features hold NaN, infinity or more than float16 can hold"
_LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Layout:
    """The contents of a store besides its rows: one unique id for each row, R and F, the type of
    the features, and how they were made."""

    image_ids: Sequence[str]
    max_regions: int
    width: int
    dtype: FeatureType = "float16"
    has_boxes: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)


def checksum(data: bytes | memoryview) -> bytes:
    """The Fletcher-32 of a chunk, as HDF5's filter appends it.

    HDF5 reads the data as big-endian words of 16 bits. The sums of little-endian words are the same
    numbers with their bytes swapped. All sums are below 2^53, so float64 holds them exactly.
    """
    words = np.frombuffer(data, np.uint8)
    if len(words) % 2:
        words = np.append(words, np.uint8(0))
    pair = words.view("<u2").astype(np.float64) @ _checksum_factors(len(words) // 2)
    # HDF5 adds carries to the low bits, which leaves 65535 in the place of 0, but for a sum of 0.
    low, high = (total and (total - 1) % 65535 + 1 for total in map(int, pair))
    return low.to_bytes(2, "big") + high.to_bytes(2, "big")


@lru_cache(maxsize=8)
def _checksum_factors(count: int) -> NDArray[np.float64]:
    """Return the factors (count, 2) of the 16-bit words in the two checksum sums."""
    return np.stack([np.ones(count), np.arange(count, 0, -1, dtype=np.float64)], axis=1)


def all_usable(values: NDArray[Any]) -> bool:
    """Whether no value is NaN, infinite or larger than float16 can hold.

    A larger float32 is infinite where a network computes in float16.
    Bytes are always usable. For float16 the test is ten times faster than `np.isfinite`: the bits
    of NaN and infinity are the largest integers, as signed ones among the positive numbers, as
    unsigned ones among the negative numbers.
    """
    if values.dtype == np.uint8:
        return True
    if values.dtype == np.float32:
        return bool(values.min() >= -_LARGEST and values.max() <= _LARGEST)
    bits = np.ascontiguousarray(values)
    return bool(bits.view(np.int16).max() < 0x7C00 and bits.view(np.uint16).max() < 0xFC00)


def check_ids(path: Path, image_ids: Sequence[str]) -> None:
    """Raise a `DataError` for `path` unless the ids are distinct and HDF5 can store them."""
    if not image_ids:
        raise DataError(f"{path}: there are no images to write features of")
    image_id, count = Counter(image_ids).most_common(1)[0]
    if count > 1:
        raise DataError(
            f"{path}: the image id '{image_id}' occurs {count} times. Ids must be unique"
        )
    if "" in image_ids or any("\0" in image_id for image_id in image_ids):
        raise DataError(f"{path}: an image id is empty or contains a null character")


def create(path: Path, layout: Layout) -> None:
    """Write a store without rows to `path`. All chunks exist and are zero."""
    n, regions = len(layout.image_ids), layout.max_regions
    with h5py.File(path, "w", libver=_LIBRARY) as file:
        described = {**layout.attributes, "format": FORMAT, "version": VERSION}
        for name, value in sorted(described.items()):
            encoded = value.encode()
            file.attrs.create(name, encoded, dtype=_fixed_string([encoded]))
        ids = [image_id.encode() for image_id in layout.image_ids]
        file.create_dataset(
            "image_id",
            data=np.array(ids, dtype=_fixed_string(ids)),
            chunks=(n,),
            fletcher32=True,
            track_times=False,
        )
        _create_dataset(file, "n_regions", (n,), (n,), np.dtype("<i4"))
        if layout.has_boxes:
            _create_dataset(file, "boxes", (n, regions, 4), (1, regions, 4), np.dtype("<f4"))
        shape = regions, layout.width
        _create_dataset(file, "features", (n, *shape), (1, *shape), FEATURES[layout.dtype])


def _fixed_string(values: Sequence[bytes]) -> np.dtype[Any]:
    """Strings of fixed length.

    Strings of variable length are on HDF5's global heap, which has no checksum. A damaged heap can
    make the library loop forever.
    """
    return h5py.string_dtype("utf-8", max(1, *map(len, values)))


def _create_dataset(
    file: h5py.File, name: str, shape: tuple[int, ...], chunk: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    """Create a dataset. Its chunks get their places in the file at once."""
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_chunk(chunk)
    settings.set_fletcher32()
    settings.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    settings.set_obj_track_times(False)
    kind = h5py.h5t.py_create(dtype)
    h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(shape), settings)


def has_row_checksums(dataset: h5py.Dataset) -> bool:
    """Whether each row is a chunk with a checksum and without compression, as `create` makes them.

    Other programs may write other chunks, or no chunks.
    """
    if dataset.chunks != (1, *dataset.shape[1:]) or not dataset.fletcher32:
        return False
    filters = dataset.id.get_create_plist().get_nfilters()
    return bool(filters == 1 and dataset.id.get_num_chunks() == len(dataset))


def chunk_places(file: h5py.File, name: str) -> NDArray[np.int64]:
    """Return the offsets (n,) of the chunks of a dataset in the file, by row."""
    dataset = file[name]
    places = np.zeros(dataset.id.get_num_chunks(), np.int64)

    def enter(chunk: Any) -> None:
        places[chunk.chunk_offset[0] // dataset.chunks[0]] = chunk.byte_offset

    dataset.id.chunk_iter(enter)
    return places


def inspect(file: h5py.File, path: Path) -> Layout:
    """The layout of an opened store. A `DataError` names `path` if the file is not a store."""
    attributes: dict[str, str] = {}
    for name in file.attrs:
        if not _is_fixed_string(file.attrs.get_id(name).dtype):
            raise DataError(f"{path}: attribute '{name}' is not a string of fixed length{AGAIN}")
        attributes[name] = file.attrs[name].decode()
    if attributes.pop("format", "") != FORMAT or attributes.pop("version", "") != VERSION:
        raise DataError(f"{path}: not a feature store of version {VERSION}{AGAIN}")
    features, counts, ids = (
        _dataset(file, name, path) for name in ("features", "n_regions", "image_id")
    )
    shape = features.shape
    n, regions, width = shape if len(shape) == 3 else (0, 0, 0)
    expected: list[tuple[h5py.Dataset, tuple[int, ...], list[Any]]] = [
        (counts, (n,), ["<i4"]),
        (features, (n, regions, width), [*FEATURES.values()]),
    ]
    if "boxes" in file:
        expected.append((_dataset(file, "boxes", path), (n, regions, 4), ["<f4"]))
    for dataset, wanted, kinds in expected:
        if dataset.shape != wanted or dataset.dtype not in kinds:
            stored = f"{dataset.dtype} {dataset.shape}"
            raise DataError(f"{path}: dataset '{dataset.name}' is {stored}, unlike in a store")
    if 0 in shape:
        raise DataError(f"{path}: the feature store is empty (features {shape})")
    if not _is_fixed_string(ids.dtype):
        raise DataError(f"{path}: image ids are not strings of fixed length{AGAIN}")
    image_ids = [value.decode() for value in ids[:]]
    if len(image_ids) != n or len(set(image_ids)) != n:
        raise DataError(f"{path}: image ids are missing or occur twice{AGAIN}")
    dtype = next(name for name, kind in FEATURES.items() if kind == features.dtype)
    return Layout(image_ids, regions, width, dtype, "boxes" in file, attributes)


def _is_fixed_string(kind: np.dtype[Any]) -> bool:
    text = h5py.check_string_dtype(kind)
    return text is not None and text.length is not None


def _dataset(file: h5py.File, name: str, path: Path) -> h5py.Dataset:
    """The dataset `name`, which must be in this file."""
    if name not in file:
        raise DataError(f"{path}: no dataset '{name}'; not a feature store{AGAIN}")
    dataset = hdf5_file.member(file, name, f"{path}: dataset '{name}'")
    if not isinstance(dataset, h5py.Dataset):
        raise DataError(f"{path}: '{name}' is not a dataset{AGAIN}")
    return dataset
