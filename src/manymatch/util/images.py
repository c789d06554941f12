"""Reading images safely: a file may be damaged or malicious."""

import contextlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError, features

from manymatch.util.errors import DataError, first_line
from manymatch.util.regular_file import HEIC_READ, open_regular

if HEIC_READ:
    import pillow_heif

    pillow_heif.register_heif_opener()

MAX_PIXELS = 64_000_000
"""Larger images are refused before decoding: a small file can decode to more than the memory."""
_FORMATS = (
    *("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF"),
    *(["AVIF"] if features.check("avif") else []),  # Pillow 11.3
    *(["HEIF"] if HEIC_READ else []),
)
"""Formats of photographs. Some of Pillow's other readers start programs."""
REMEDY = "Replace or remove the file (of a data set: run the stage 'download' again)"


# Pillow's remarks about single files, such as damaged EXIF data. What matters is an error. For
# images between 89 and 179 million pixels, Pillow warns before `opened` refuses them.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


def read_crops(
    source: Path | Image.Image,
    crops: NDArray[np.float32] | None,
    size: int,
    resample: Image.Resampling = Image.Resampling.BICUBIC,
) -> NDArray[np.uint8]:
    """(c, size, size, 3) RGB: every crop (x1 y1 x2 y2 in 0..1), resized to a square.

    `crops` None is one crop, the largest square in the middle of the image.
    """
    with decoding(source):
        image = _open(source)
        side = min(image.size)
        left, top = (image.width - side) / 2, (image.height - side) / 2
        boxes: Any = [(left, top, left + side, top + side)]
        if crops is not None:
            boxes = (crops * [*image.size, *image.size]).tolist()
        return np.stack([np.asarray(image.resize((size, size), resample, box=b)) for b in boxes])


def read_image(source: Path | Image.Image) -> NDArray[np.uint8]:
    """(h, w, 3) RGB, in the size of the image."""
    with decoding(source):
        return np.array(_open(source))


def read_small(source: Path | bytes, side: int) -> NDArray[np.uint8]:
    """(side, side, 3) RGB of the whole image. Every byte of the image is decoded as a check.

    Raises:
        DataError: the image cannot be decoded, or has fewer than `side` rows or columns.
    """
    with decoding(source):
        image = _open(source, draft=2 * side)
        if min(image.size) < side:
            size = f"{image.width} x {image.height} pixels"
            raise DataError(f"an image of {size}, at least {side} x {side} are needed")
        return np.asarray(image.resize((side, side), Image.Resampling.BOX))


@contextlib.contextmanager
def opened(
    source: Path | bytes, most: int | None = None, remedy: str = REMEDY
) -> Iterator[Image.Image]:
    """An image in a format of photographs, not yet decoded; `most`: pixels, else `MAX_PIXELS`."""
    most = most or MAX_PIXELS
    stream = io.BytesIO(source) if isinstance(source, bytes) else open_regular(source)
    with stream, Image.open(stream, formats=_FORMATS) as image:
        if image.width * image.height > most:
            size = f"{image.width} x {image.height} pixels"
            raise DataError(f"{_name(source)}: {size}, at most {most:,} are read. {remedy}")
        yield image


def small_jpeg(image: Image.Image, side: int, quality: int) -> bytes:
    """An opened image as an upright JPEG with at most `side` pixels on its longest side."""
    image.draft("RGB", (side, side))
    small = upright_rgb(image)
    small.thumbnail((side, side), Image.Resampling.BICUBIC)
    file = io.BytesIO()
    small.save(file, "JPEG", quality=quality)
    return file.getvalue()


_RANGES = {"I": (255, 2**16 - 1), "F": (1.0, 255.0)}
"""The largest value of a picture of 32 bits lies between these. A picture with a smaller one, such
as 1.0 for white, would be black."""


def upright_rgb(image: Image.Image) -> Image.Image:
    """8-bit RGB, rotated by the EXIF data. Of an animation: the current frame.

    Raises:
        ValueError: the picture has 32 bits, and its values are not those of 8 or 16 bits.
    """
    with contextlib.suppress(Exception):  # Damaged EXIF data do not make an image unusable.
        image = ImageOps.exif_transpose(image)
    if image.mode == "P" and "transparency" in image.info:  # Pillow asks for this step
        image = image.convert("RGBA")
    if image.mode in _RANGES:
        values, (low, high) = np.asarray(image), _RANGES[image.mode]
        lowest, largest = values.min(), values.max()  # NaN if one is
        if not (lowest >= 0 and low < largest <= high):
            raise ValueError(
                f"values of 32 bits from {lowest:g} to {largest:g}; save it with 8 bits, 0 to 255"
            )
    if image.mode.startswith("I"):  # 16 bits, which Pillow would cut off at 255
        values = np.clip(np.asarray(image), 0, 2**16 - 1)
        image = Image.fromarray((values >> 8).astype(np.uint8))
    return image.convert("RGB")


@contextlib.contextmanager
def decoding(source: Path | bytes | Image.Image, remedy: str = REMEDY) -> Iterator[None]:
    """Turn the faults of an image into one line that says what to do."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # Pillow's decoders raise almost anything on damaged files.
        fault = f"cannot be decoded ({first_line(error)})"
        if isinstance(error, OSError) and error.strerror:  # whose text names the file again
            fault = f"cannot be read: {error.strerror}"
        if isinstance(error, UnidentifiedImageError):  # whose text names no file
            empty = isinstance(source, Path) and not source.stat().st_size
            fault = "is empty" if empty else "cannot be read: not an image"
        raise DataError(f"{_name(source)}: {fault}. {remedy}") from None


def _name(source: Path | bytes | Image.Image) -> Path | str:
    return source if isinstance(source, Path) else "the picture"


def _open(source: Path | bytes | Image.Image, draft: int | None = None) -> Image.Image:
    """`draft`: a side in pixels; a JPEG may be decoded in a smaller size, but not below it."""
    if isinstance(source, Image.Image):
        if 0 in source.size:
            raise DataError(f"{_name(source)}: {source.width} x {source.height} pixels. {REMEDY}")
        return upright_rgb(source)
    with opened(source) as image:
        if draft:
            image.draft("RGB", (draft, draft))
        return upright_rgb(image)
