"""Published features of sketches and images, and their classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.evaluation.external.arrays import open_array
from manymatch.experiments.sketches.settings import DataSettings, Part
from manymatch.foreign.numpy_file import load_array
from manymatch.foreign.text_lines import numbered_lines
from manymatch.system.errors import DataError

_ROWS = 4096
"""Rows read at once."""
_FEWEST = 3
"""Classes to train on: one is held out, and a negative needs a second."""


class Side(NamedTuple):
    """One modality: `vectors (n, D)` of length 1, float16, and `labels (n,)`, classes' numbers."""

    vectors: Tensor
    labels: Tensor

    def of(self, classes: Tensor) -> Side:
        """The rows of these classes."""
        chosen = torch.isin(self.labels, classes)
        return Side(self.vectors[chosen], self.labels[chosen])


@dataclass(frozen=True)
class Data:
    """Both modalities. `classes`: their names by number. `seen` and `unseen`: the numbers of those
    that may be trained on and those that may not, ascending, of both modalities all."""

    sketches: Side
    images: Side
    classes: list[str]
    seen: Tensor
    unseen: Tensor


def read_data(settings: DataSettings) -> Data:
    """Everything that `settings` name; half the memory of the features as float32.

    Raises:
        DataError: a file is missing, damaged or does not fit the others, a number is not finite,
            or a class that is to be unseen has no sketches or no images.
    """
    sides = [_read_side(parts) for parts in (settings.sketches, settings.images)]
    shared = set.intersection(*(set(names) for _, names in sides))
    unseen = _unseen(settings.unseen)
    for name in unseen:
        if name not in shared:
            raise DataError(
                f"unseen class '{name}' has no sketches or no images; correct 'unseen' or name "
                "the files that have them"
            )
    seen = shared - set(unseen)
    if len(seen) < _FEWEST:
        raise DataError(
            f"{len(seen)} classes with sketches and images are left to train on, {_FEWEST} are "
            "needed; 'unseen' names too many, or sketches and images call classes differently"
        )
    classes = sorted({name for _, names in sides for name in names})
    numbers = {name: number for number, name in enumerate(classes)}
    sketches, images = (Side(vectors, _numbered(names, numbers)) for vectors, names in sides)
    parts = (_numbered(sorted(each), numbers) for each in (seen, set(unseen)))
    return Data(sketches, images, classes, *parts)


def _numbered(names: Iterable[str], numbers: Mapping[str, int]) -> Tensor:
    return torch.tensor([numbers[name] for name in names])


def files_of(settings: DataSettings) -> Iterator[str]:
    """The files that `settings` name, as written there."""
    for part in (*settings.sketches, *settings.images):
        yield from (part.features, part.classes)
    if isinstance(settings.unseen, str):
        yield settings.unseen


def _read_side(parts: Sequence[Part]) -> tuple[Tensor, list[str]]:
    vectors: list[Tensor] = []
    names: list[str] = []
    for part in parts:
        found, of_rows = _read_features(part.features), _read_classes(Path(part.classes))
        if len(found) != len(of_rows):
            raise DataError(
                f"{part.classes}: {len(of_rows)} classes for the {len(found)} rows of "
                f"{part.features}"
            )
        if vectors and found.shape[1] != vectors[0].shape[1]:
            width = vectors[0].shape[1]
            raise DataError(f"{part.features}: {found.shape[1]} numbers a row, before it {width}")
        vectors.append(found)
        names += of_rows
    return torch.cat(vectors), names


def _read_features(text: str) -> Tensor:
    """`(n, D)` float16, a block of rows at a time."""
    array = open_array(text)
    if len(array.shape) != 2 or 0 in array.shape:
        raise DataError(f"{array.where}: shape {array.shape}, not (rows, width)")
    vectors = torch.empty(array.shape, dtype=torch.float16)
    for start in range(0, len(vectors), _ROWS):
        block = array.read(slice(start, start + _ROWS))
        spoilt = ~block.isfinite().all(1)
        if spoilt.any():
            row = start + int(spoilt.nonzero()[0])
            raise DataError(f"{array.where}: row {row} holds NaN or infinity")
        vectors[start : start + _ROWS] = normalize(block, dim=1).half()
    return vectors


def _read_classes(path: Path) -> list[str]:
    """The class of each row."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if path.suffix != ".npy":
        return [class_of(line) for _, line in numbered_lines(path)]
    values = load_array(path, mapped=True)
    if values.ndim != 1 or values.dtype.kind not in "iuSU":
        raise DataError(f"{path}: {values.dtype} {values.shape}, not a name or number a row")
    return [class_of(_text(value)) for value in values]


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def class_of(text: str) -> str:
    """What class a line means: `sketch/zebra/n1-2.png`, the same and its number, `zebra 3`, or
    the name itself."""
    head, _, last = text.strip().rpartition(" ")
    name = PurePosixPath(head if head and last.isdigit() else text.strip())
    return name.parent.name or name.name


def _unseen(given: Sequence[str] | str) -> list[str]:
    if isinstance(given, str):
        return _read_classes(Path(given))
    return list(given)
