"""Arrays in files of other programs: NumPy, safetensors, HDF5, torch's tensors, mteb's predictions.

No pickle is executed: of files of `torch.save` only tensors are read.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from manymatch.networks.torch_file import load_tensors
from manymatch.util import hdf5_file
from manymatch.util.errors import DataError, first_line
from manymatch.util.json_stream import nested_numbers
from manymatch.util.numpy_file import FAULTS, ZIP_FAULTS, load_array, read_header
from manymatch.util.regular_file import open_regular, regular_path

KINDS = ".npy, .npz, .safetensors, .h5, .hdf5 or .pt"
_FAULTS = (*FAULTS, *hdf5_file.FAULTS, *ZIP_FAULTS, SafetensorError)
"""The errors that the libraries raise for damaged files."""


@dataclass(frozen=True)
class Array:
    """`read(rows, columns, ...)` reads a part of the array; `where` names the array in messages.

    A part is float32, or float64 if float32 would round numbers of the file's type. Whole numbers
    beyond 2^53 are rounded. Only the parts that are read take memory. Held whole are `.npz`
    (from the first read), mteb's predictions, and files in torch's format of before 2020.
    """

    where: str
    shape: tuple[int, ...]
    read: Callable[..., Tensor]

    @property
    def sizes(self) -> str:
        """`shape` for messages."""
        return " x ".join(map(str, self.shape)) or "a single number"


def open_array(text: str, ids: tuple[Sequence[str], Sequence[str]] | None = None) -> Array:
    """Open the array in `FILE` or, if the file has several arrays, `FILE:KEY`.

    Args:
        ids: of a matrix of scores, the ids of its images and captions, in whose order mteb's
            predictions are read.

    Raises:
        DataError: there is no such file or key, the kind of file is unknown, or the array does not
            hold real numbers.
    """
    path, key = _path_and_key(text)
    openers = _OPENERS | ({".json": lambda path, _: _predictions(path, *ids)} if ids else {})
    if path.suffix not in openers:
        raise DataError(f"{path}: unknown kind of file. Give a file of {KINDS}.")
    with _faults(path):
        array = openers[path.suffix](path, key)

    def read(*part: Any) -> Tensor:
        with _faults(path):  # damage may show only when a part is read
            return array.read(*part)

    return replace(array, read=read)


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """Turn the faults of a library into a `DataError` of one line."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except _FAULTS as error:
        raise DataError(f"{path}: cannot be read as {path.suffix}: {first_line(error)}") from None


def file_of(text: str) -> Path:
    """The path in `FILE` or `FILE:KEY`."""
    return _path_and_key(text)[0]


def _path_and_key(text: str) -> tuple[Path, str | None]:
    if not Path(text).exists():
        name, colon, key = text.rpartition(":")
        if colon and Path(name).suffix in _OPENERS:
            return Path(name), key
    return Path(text), None


def _npy(path: Path, key: str | None) -> Array:
    if key is not None:
        raise DataError(f"{path}: a .npy file has one array without a name. Leave out ':KEY'.")
    array = load_array(path, mapped=True)
    _check_kind(str(path), array.dtype)
    return Array(str(path), array.shape, lambda *part: _unrounded(np.array(array[part])))


def _npz(path: Path, key: str | None) -> Array:
    with open_regular(path) as file, _arrays(file, path) as arrays:
        name = _array_name(path, key, arrays.files)
        member = next(file for file in arrays.zip.namelist() if file.removesuffix(".npy") == name)
        with arrays.zip.open(member) as stream:
            try:  # only the header, because the array may not fit in memory
                shape, _, dtype = read_header(stream)
            except ValueError as error:
                raise DataError(f"{path}:{name}: not an array: {first_line(error)}") from None
    _check_kind(f"{path}:{name}", dtype)

    @cache
    def unpacked() -> np.ndarray:
        with open_regular(path) as file, _arrays(file, path) as arrays:
            array: np.ndarray = arrays[name]
            return array

    return Array(f"{path}:{name}", shape, lambda *part: _unrounded(unpacked()[part]))


def _arrays(file: BinaryIO, path: Path) -> Any:
    arrays = np.load(file, allow_pickle=False)
    if not isinstance(arrays, np.lib.npyio.NpzFile):
        raise DataError(f"{path}: cannot be read as .npz: not an archive of arrays")
    return arrays


def _safetensors(path: Path, key: str | None) -> Array:
    with regular_path(path) as opened:
        file = safe_open(opened, framework="pt")
    where = f"{path}:{(name := _array_name(path, key, file.keys()))}"
    part = file.get_slice(name)
    kind = part.get_dtype()
    if not kind.startswith(("F", "BF", "I", "U")):
        raise DataError(f"{where}: {kind} are not real numbers")
    fits = kind == "F32" or not kind.endswith(("32", "64"))
    dtype = torch.float32 if fits else torch.float64
    return Array(where, tuple(part.get_shape()), lambda *rows: part[rows].to(dtype))


def _hdf5(path: Path, key: str | None) -> Array:
    datasets = hdf5_file.datasets(hdf5_file.open_hdf5(path), str(path))
    name = _array_name(path, key, datasets)
    data, where = datasets[name], f"{path}:{name}"
    _check_kind(where, data.dtype)
    hdf5_file.check_dataset(data, where)
    if data.shape is None:
        raise DataError(f"{where}: an empty dataset without an array")
    return Array(where, data.shape, lambda *part: _unrounded(np.asarray(data[part])))


def _torch(path: Path, key: str | None) -> Array:
    saved = load_tensors(path)
    where, tensor = str(path), saved
    if isinstance(saved, dict):
        tensors = {str(name): one for name, one in saved.items() if isinstance(one, Tensor)}
        where = f"{path}:{(name := _array_name(path, key, tensors))}"
        tensor = tensors.get(name)
    elif key is not None:
        raise DataError(f"{path}: one tensor without a name. Leave out ':KEY'.")
    if not isinstance(tensor, Tensor):
        raise DataError(f"{where}: no tensor of plain numbers")
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise DataError(f"{where}: fewer numbers than its shape {tuple(tensor.shape)} has")
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise DataError(f"{where}: {tensor.dtype} are not real numbers")
    fits = tensor.dtype == torch.float32 or tensor.element_size() < 4
    dtype = torch.float32 if fits else torch.float64
    return Array(where, tuple(tensor.shape), lambda *part: tensor[part].detach().to(dtype))


def _predictions(path: Path, images: Sequence[str], captions: Sequence[str]) -> Array:
    """The scores that mteb wrote for a task of either direction. `images` and `captions` are the
    ids of rows and columns.

    Raises:
        DataError: the file is something else, or lacks a pair.
    """
    rows, columns = ({name: row for row, name in enumerate(ids)} for ids in (images, captions))
    scores = np.full((len(rows), len(columns)), np.nan)
    part, turned = None, False
    for (*keys, query, item), value in nested_numbers(path, 4):
        if part is None:
            part, turned = keys, query in columns and item in rows
            if turned and query in rows and item in columns:
                raise DataError(f"{path}: {query[:60]!a} is the id of an image and of a caption")
        if keys != part:
            raise DataError(f"{path}: scores of several splits. Run mteb on one split.")
        pair = (item, query) if turned else (query, item)
        if pair[0] not in rows or pair[1] not in columns:
            raise DataError(
                f"{path}: {query[:60]!a} and {item[:60]!a} are not an image and a caption of the "
                "split. Check that mteb ran a task of the same split of the same data set."
            )
        scores[rows[pair[0]], columns[pair[1]]] = value
    if part is None:
        raise DataError(
            f"{path}: no scores of pairs, as in mteb's predictions. Of programs that write metrics "
            "alone, such as CLIP_benchmark and open_clip, give the embeddings."
        )
    known = scores.size - int(np.isnan(scores).sum())
    if known < scores.size:
        raise DataError(
            f"{path}: scores of {known:,} of {scores.size:,} pairs, but every pair is ranked. Give "
            "the predictions of the task DATASET-pairs-t2i, or embeddings."
        )
    return Array(str(path), scores.shape, lambda *part: torch.from_numpy(scores[part]))


_OPENERS: dict[str, Callable[[Path, str | None], Array]] = {
    ".pt": _torch,
    ".pth": _torch,
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
}


def _array_name(path: Path, key: str | None, names: Collection[str]) -> str:
    """The name of the array: `key`, or the name of the only array."""
    if not names:
        raise DataError(f"{path}: no array in the file")
    known = ", ".join(sorted(names))
    if key is None and len(names) != 1:
        raise DataError(f"{path}: several arrays: {known}. Name one as {path.name}:KEY.")
    if key is not None and key not in names:
        raise DataError(f"{path}: no array '{key}'. Choose one of {known}.")
    return key or next(iter(names))


def _check_kind(where: str, dtype: np.dtype) -> None:
    if dtype.kind not in "fiu":
        raise DataError(f"{where}: {dtype} are not real numbers")


def _unrounded(part: np.ndarray) -> Tensor:
    """`part` in the type that `Array` promises. Numbers beyond that type become infinite without
    NumPy's warning; a later check refuses them."""
    fits = np.can_cast(part.dtype, np.float32, "safe")
    with np.errstate(over="ignore"):
        return torch.from_numpy(part.astype(np.float32 if fits else np.float64, copy=False))


def finite(values: Tensor, where: str) -> Tensor:
    """Return `values`; a number that is not finite is a `DataError`."""
    if not bool(torch.isfinite(values).all()):
        raise DataError(f"{where}: holds NaN or infinite numbers, among which nothing has a rank")
    return values
