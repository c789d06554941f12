"""Reading images safely: a file may be damaged or malicious."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from manymatch.foreign.regular_file import open_regular
from manymatch.system.errors import DataError, first_line

MAX_PIXELS = 64_000_000
"""Larger images are refused before decoding: a small file can decode to more than the memory."""
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
"""Formats of photographs. Some of Pillow's other readers start programs."""
_REMEDY = "Replace or remove the file and run the stage 'download' again"


def read_crops(
    source: Path | Image.Image, crops: NDArray[np.float32], size: int
) -> NDArray[np.uint8]:
    """(c, size, size, 3) RGB: every crop (x1 y1 x2 y2 in 0..1), resized to a square, bicubic."""
    with _decoding(source):
        image = _open(source)
        return np.stack([_crop(image, crop, size) for crop in crops.tolist()])


def read_image(source: Path | Image.Image) -> NDArray[np.uint8]:
    """(h, w, 3) RGB, in the size of the image."""
    with _decoding(source):
        return np.array(_open(source))


@contextlib.contextmanager
def _decoding(source: Path | Image.Image) -> Iterator[None]:
    """Turn the faults of an image into one line that says what to do."""
    path = source if isinstance(source, Path) else "an image in memory"
    try:
        yield
    except DataError:
        raise
    except UnidentifiedImageError:
        empty = (
            "is empty"
            if isinstance(path, Path) and not path.stat().st_size
            else "is not an image that can be read"
        )
        raise DataError(f"{path}: {empty}. {_REMEDY}") from None
    except Exception as error:  # Pillow's decoders raise almost anything on damaged files.
        reason = first_line(error)
        raise DataError(f"{path}: cannot be decoded ({reason}). {_REMEDY}") from None


def _open(source: Path | Image.Image) -> Image.Image:
    if isinstance(source, Image.Image):
        return source.convert("RGB")
    with open_regular(source) as stream, Image.open(stream, formats=_FORMATS) as image:
        if image.width * image.height > MAX_PIXELS:
            size = f"{image.width} x {image.height} pixels"
            raise DataError(f"{source}: {size}, at most {MAX_PIXELS:,} are read. {_REMEDY}")
        return image.convert("RGB")


def _crop(image: Image.Image, crop: list[float], size: int) -> NDArray[np.uint8]:
    width, height = image.size
    x1, y1, x2, y2 = crop
    box = (x1 * width, y1 * height, x2 * width, y2 * height)
    return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC, box=box))
