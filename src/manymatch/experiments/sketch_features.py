"""Features of sketches and images, and the classes of both: the files, and what they hold."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, NamedTuple

import torch
from pydantic import BeforeValidator, Field
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.config.strict import Strict
from manymatch.evaluation.external.arrays import open_array
from manymatch.util.errors import DataError
from manymatch.util.numpy_file import load_array, names_in
from manymatch.util.text_lines import numbered_lines

_ROWS = 4096
"""The number of rows that are read at once."""
_SHORTEST = 1e-12
"""Shorter vectors are not normalised to length 1."""
_FEWEST = 3
"""The fewest classes to train on: one is held out, and a negative needs a second one."""


class Part(Strict):
    """A file of features and the classes of its rows."""

    features: str
    """An array (n, D): FILE or FILE:KEY (.npy, .npz, .safetensors, .h5)."""
    classes: str
    """The class of each row: an array `.npy` of names, numbers or paths, or a text file with a
    line for each row. The class of a path is its folder."""


Parts = Annotated[
    tuple[Part, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, dict) else value),
    Field(min_length=1),
]
"""The YAML file has one part or a list of parts."""


class DataSettings(Strict):
    """The two modalities, and the unseen classes: a list or a text file."""

    sketches: Parts
    images: Parts
    unseen: Annotated[tuple[str, ...], Field(min_length=1)] | str


class Side(NamedTuple):
    """One modality: `vectors (n, D)` of length 1 in float16, and class numbers `labels (n,)`."""

    vectors: Tensor
    labels: Tensor

    def of(self, classes: Tensor) -> "Side":
        """The rows of these classes."""
        rows = torch.isin(self.labels, classes)
        return Side(self.vectors[rows], self.labels[rows])


@dataclass(frozen=True)
class Data:
    """Both modalities. `classes` are the names of the classes by number. `seen` and `unseen` are
    the ascending numbers of the classes that may and may not be trained on. Both have them all."""

    sketches: Side
    images: Side
    classes: list[str]
    seen: Tensor
    unseen: Tensor


def read_data(settings: DataSettings) -> Data:
    """Read all files of `settings`. The features take half the memory of float32.

    Raises:
        DataError: a file is missing or damaged or does not fit the others, a number is not finite,
            or an unseen class has no sketches or no images.
    """
    sides = [_read_side(parts) for parts in (settings.sketches, settings.images)]
    shared = set.intersection(*(set(names) for _, names in sides))
    stated = settings.unseen
    unseen = _read_classes(Path(stated)) if isinstance(stated, str) else list(stated)
    for name in unseen:
        if name not in shared:
            raise DataError(
                f"data.unseen: class '{name}' has no sketches or no images. Correct 'unseen', or "
                "add the files of the class"
            )
    seen = shared - set(unseen)
    if len(seen) < _FEWEST:
        raise DataError(
            f"data: {len(seen)} classes with sketches and images are left to train on, {_FEWEST} "
            "are needed. Shorten 'unseen', or give classes the same names on both sides"
        )
    classes = sorted({name for _, names in sides for name in names})
    numbers = {name: number for number, name in enumerate(classes)}
    sketches, images = (Side(vectors, _numbered(names, numbers)) for vectors, names in sides)
    groups = (_numbered(sorted(group), numbers) for group in (seen, set(unseen)))
    return Data(sketches, images, classes, *groups)


def _numbered(names: Iterable[str], numbers: Mapping[str, int]) -> Tensor:
    return torch.tensor([numbers[name] for name in names])


def files_of(settings: DataSettings) -> Iterator[str]:
    """The files of `settings`, as the settings write them."""
    for part in (*settings.sketches, *settings.images):
        yield from (part.features, part.classes)
    if isinstance(settings.unseen, str):
        yield settings.unseen


def _read_side(parts: Sequence[Part]) -> tuple[Tensor, list[str]]:
    vectors: list[Tensor] = []
    names: list[str] = []
    for part in parts:
        features, classes = _read_features(part.features), _read_classes(Path(part.classes))
        if len(features) != len(classes):
            raise DataError(
                f"{part.classes}: {len(classes)} classes for the {len(features)} rows of "
                f"{part.features}. Name the files that belong together"
            )
        if vectors and features.shape[1] != vectors[0].shape[1]:
            raise DataError(
                f"{part.features}: {features.shape[1]} numbers in a row, but "
                f"{vectors[0].shape[1]} in the files before. Use features of one backbone"
            )
        vectors.append(features)
        names += classes
    return torch.cat(vectors), names


def _read_features(text: str) -> Tensor:
    """`(n, D)` float16, a block of rows at a time."""
    array = open_array(text)
    if len(array.shape) != 2 or 0 in array.shape:
        raise DataError(f"{array.where}: the shape is {array.shape}, not (rows, width)")
    vectors = torch.empty(array.shape, dtype=torch.float16)
    for start in range(0, len(vectors), _ROWS):
        block = array.read(slice(start, start + _ROWS))
        lengths = block.norm(dim=1)
        faulty = ~lengths.isfinite() | (lengths < _SHORTEST) & (block != 0).any(1)
        if faulty.any():
            row = start + int(faulty.nonzero()[0])
            raise DataError(
                f"{array.where}: row {row} holds NaN or infinity, or numbers too large or too "
                "small for a vector of length 1"
            )
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
        raise DataError(
            f"{path}: {values.dtype} {values.shape} is not one name or number for each row"
        )
    return list(map(class_of, names_in(values)))


def class_of(text: str) -> str:
    """The class that a line names: a path (`sketch/zebra/n1-2.png`, the class is the folder) or the
    name of the class (`zebra`). Both may be followed by a number (`zebra 3`)."""
    head, _, last = text.strip().rpartition(" ")
    name = PurePosixPath(head if head and last.isdigit() else text.strip())
    return name.parent.name or name.name
