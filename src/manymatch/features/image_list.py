"""The images that a caption table lists."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from manymatch.datasets.image_files import image_path, read_image_folder
from manymatch.util.errors import DataError
from manymatch.util.parquet_file import open_table, table_faults


@dataclass(frozen=True)
class Picture:
    """An image: a file or decoded pixels."""

    image_id: str
    source: Path | Image.Image


@dataclass(frozen=True)
class Located(Picture):
    """An image with the boxes (k, 4) of its regions, x1 y1 x2 y2 in 0..1."""

    boxes: NDArray[np.float32]


@dataclass(frozen=True)
class ImageFile(Picture):
    """An image of the caption table."""

    source: Path


def list_images(captions: Path, raw: Path, features: str = "FEATURES") -> list[ImageFile]:
    """The distinct images of the caption table, in table order. A message names the `features`.

    Raises:
        DataError: an image id has two files, or a file is missing or outside `raw`.
    """
    files: dict[str, str] = {}
    for image_id, file in read_columns(captions, ("image_id", "file")):
        if files.setdefault(image_id, file) != file:
            raise DataError(
                f"{captions}: image '{image_id}' has two files, {files[image_id]} and {file}"
            )
    folder = read_image_folder(raw)
    if folder.absent:
        raise DataError(
            f"{raw}: the data set was fetched without images, so nothing can be computed. "
            f"Import published features: set extraction.{features}.published.{raw.name} in "
            "params.yaml (docs/features.md)"
        )
    images = [ImageFile(name, image_path(raw, file, folder)) for name, file in files.items()]
    for image in images:
        if not image.source.is_file():
            raise DataError(f"{image.source}: no such image. Run the stage 'download' again")
    return images


def read_columns(captions: Path, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The named columns of the caption table, row by row."""
    table = open_table(captions, names, "captions")
    with table_faults(captions, "captions"):
        for batch in table.iter_batches(columns=list(names)):
            yield from zip(*(batch[name].to_pylist() for name in names), strict=True)
