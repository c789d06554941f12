"""Features of video clips: one vector each, in a file or a folder of files.

    .pkl, .pickle    HowTo100M's list of {"id", "2d", "3d"}; or a mapping
    .pth, .pt        a mapping, saved by torch
    .npz, .h5, .hdf5 an array for each name

A mapping goes from names to vectors, or consists of two such mappings, "2d" and "3d". Nothing in a
file is executed, and reading a file takes no more memory than the file is long.

HowTo100M (Miech et al., ICCV 2019) publishes 2,048 numbers of frames (`2d`, ResNet-152) and 2,048
of motion (`3d`, ResNeXt-101), each the maximum over time. As in HowTo100M's code, both vectors are
L2-normalised and concatenated. Vectors in one piece are used unchanged.
"""

import io
import math
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manymatch.features.importers.importing import ImageTable, Published, Row
from manymatch.networks.torch_file import load_tensors
from manymatch.util import hdf5_file
from manymatch.util.errors import DataError, first_line
from manymatch.util.hdf5_file import FAULTS, open_hdf5
from manymatch.util.numpy_file import MAX_IMAGE_BYTES, ZIP_FAULTS
from manymatch.util.pickles import PickledArray, read_pickle
from manymatch.util.regular_file import open_regular

PARTS = ("2d", "3d")
"""The keys of frame features and motion features, if they are separate."""
Streams = tuple[Mapping[str, Any], ...]
"""A mapping from names to values that `vector` reads, or one such mapping for each of `PARTS`."""


@contextmanager
def open_vectors(path: Path) -> Iterator[Streams]:
    """Open a file and yield its vectors by name.

    Raises:
        DataError: the file is damaged or has another form.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"{path}: not one of {', '.join(sorted(_READERS))}")
    with reader(path) as streams:
        yield streams


def vector(value: Any, where: str) -> NDArray[np.float32]:
    """Return the vector (D,) of `value`, the maximum over rows if `value` is (T, D).

    Raises:
        DataError: `value` is not an array of finite numbers of such a shape, or is too large.
    """
    array = _READS.get(type(value), _refused)(value, where)
    if array.ndim not in (1, 2) or 0 in array.shape or array.dtype.kind not in "fiu":
        raise DataError(f"{where}: {array.dtype} {array.shape} is neither (D,) nor (T, D) numbers")
    pooled = (array if array.ndim == 1 else array.max(0)).astype(np.float32)
    if not np.isfinite(pooled).all():
        raise DataError(f"{where}: contains NaN or infinity")
    return pooled


def _streams(value: Any, path: Path) -> Streams:
    if isinstance(value, list):
        value = _clip_parts(value, path)
    if not isinstance(value, Mapping) or not value:
        raise DataError(f"{path}: expected vectors by name")
    if not value.keys() ^ set(PARTS) and all(isinstance(part, Mapping) for part in value.values()):
        return tuple(value[name] for name in PARTS)
    return (value,)


def _clip_parts(entries: list[Any], path: Path) -> dict[str, dict[str, Any]]:
    """Return one mapping per part from HowTo100M's list of clips."""
    parts: dict[str, dict[str, Any]] = {name: {} for name in PARTS}
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping) or not {"id", *PARTS} <= entry.keys():
            raise DataError(f"{path}: clip {number}: without 'id', '2d' and '3d'")
        name = str(entry["id"])
        if name in parts[PARTS[0]]:
            raise DataError(f"{path}: clip {number}: a second clip with the id '{name}'")
        for part in PARTS:
            parts[part][name] = entry[part]
    return parts


@contextmanager
def _zipped(path: Path) -> Iterator[Streams]:
    try:
        with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            arrays = {
                info.filename.removesuffix(".npy"): partial(_read_member, archive, info)
                for info in members
            }
            if len(arrays) < len(members):
                raise DataError(f"{path}: several arrays have the same name. Write the file again")
            parts = tuple(
                {
                    name.partition("/")[2]: a
                    for name, a in arrays.items()
                    if name.startswith(f"{p}/")
                }
                for p in PARTS
            )
            yield parts if sum(map(len, parts)) == len(arrays) else (arrays,)
    except (*ZIP_FAULTS, OSError, RuntimeError) as error:
        raise DataError(f"{path}: not a complete .npz file ({first_line(error)})") from None


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> NDArray[Any]:
    _bounded(info.file_size, where)
    with archive.open(info) as stream:
        data = io.BytesIO(stream.read(MAX_IMAGE_BYTES))
    try:
        array: NDArray[Any] = np.lib.format.read_array(data, allow_pickle=False)
    except Exception as error:  # NumPy raises almost anything for damaged files
        raise DataError(f"{where}: not an array ({first_line(error)})") from None
    return array


@contextmanager
def _hdf5(path: Path) -> Iterator[Streams]:
    try:
        with open_hdf5(path) as file:
            names = PARTS if {*file} == {*PARTS} else ()
            groups = [hdf5_file.member(file, name, f"{path}: '{name}'") for name in names]
            if not groups or not all(isinstance(group, h5py.Group) for group in groups):
                groups = [file]
            yield tuple({name: partial(_read_dataset, g, name) for name in g} for g in groups)
    except FAULTS as error:
        reason = first_line(error)
        raise DataError(f"{path}: damaged or not an HDF5 file ({reason})") from None


def _read_dataset(group: h5py.Group, name: str, where: str) -> NDArray[Any]:
    dataset = hdf5_file.member(group, name, where)
    if not isinstance(dataset, h5py.Dataset):
        return _refused(dataset, where)
    # A chunk may be larger than the array and is decompressed completely.
    chunk = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    _bounded(max(dataset.nbytes, chunk), where)
    return np.asarray(dataset[()])


def _read_tensor(tensor: Tensor, where: str) -> NDArray[Any]:
    _bounded(tensor.numel() * tensor.element_size(), where)
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_complex():
        raise DataError(f"{where}: not a plain tensor")
    array: NDArray[Any] = tensor.detach().float().numpy()
    return array


def _refused(value: Any, where: str) -> NDArray[Any]:
    raise DataError(f"{where}: {type(value).__name__} is not an array of numbers")


def _bounded(size: int, where: str) -> None:
    if size > MAX_IMAGE_BYTES:
        raise DataError(f"{where}: {size:,} B is too large for one clip")


_READERS: dict[str, Callable[[Path], AbstractContextManager[Streams]]] = {
    **dict.fromkeys(
        (".pkl", ".pickle"), lambda path: nullcontext(_streams(read_pickle(path), path))
    ),
    **dict.fromkeys((".pth", ".pt"), lambda path: nullcontext(_streams(load_tensors(path), path))),
    ".npz": _zipped,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
}
_READS: dict[type, Any] = {
    PickledArray: lambda array, where: np.asarray(array),
    Tensor: _read_tensor,
    partial: lambda read, where: read(where),  # of an array in a file
}


def open_clips(path: Path, images: ImageTable, max_regions: int | None) -> Published:
    """Open a file or folder of vectors; see `importers.open_published`.

    Clips that are not in the caption table are skipped. Only one file is open at a time.
    """
    rows = {name: row for row, name in enumerate(images.image_ids)}
    files, unused = [path], set[Path]()
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if file.suffix.lower() in _READERS]

    def vectors() -> Generator[Row, None, None]:
        for file in files:
            with open_vectors(file) as streams:
                names = [name for name in streams[0] if name in rows]
                unused.update([] if names else [file])
                for name in names:
                    where = f"{file}: '{name}'"
                    yield Row(rows[name], where, partial(_concatenated, streams, name, where))

    for _ in images.each_once(vectors(), path):  # only names are read
        pass
    files = [file for file in files if file not in unused]
    first = vectors()
    features, _ = next(first).read()
    first.close()
    return Published(tuple(files), features.shape[1], 1, has_boxes=False, rows=vectors)


def _concatenated(streams: Streams, name: str, where: str) -> tuple[NDArray[np.float32], None]:
    """(1, D) the clip's vector; the vectors of two streams normalised and concatenated."""
    if any(name not in stream for stream in streams):
        raise DataError(f"{where}: only one of the features 2d and 3d")
    try:
        vectors = [vector(stream[name], where) for stream in streams]
    except (*ZIP_FAULTS, *FAULTS, OSError, RuntimeError) as error:
        raise DataError(f"{where}: the file is damaged ({first_line(error)})") from None
    if len(vectors) == 1:
        return vectors[0][None], None
    # The squares of very small and very large numbers do not fit float32.
    wide = [part.astype(np.float64) for part in vectors]
    unit = [part / (np.linalg.norm(part) or 1.0) for part in wide]
    return np.concatenate(unit, dtype=np.float32)[None], None
