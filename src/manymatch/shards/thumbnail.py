"""Small JPEGs of the images, for people to look at in the report."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from manymatch.errors import DataError

_QUALITY = 80


def thumbnail(folder: Path, file: str, side: int) -> bytes | None:
    """`folder/file` as a JPEG whose longest side is at most `side` pixels; None without a file."""
    path = folder / file
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"image file '{file}' lies outside {folder}")
    if not file or not path.is_file():
        return None
    try:
        with Image.open(path) as image:
            image.draft("RGB", (side, side))
            small = image.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: not a usable image ({error})") from None
    small.thumbnail((side, side), Image.Resampling.BICUBIC)
    stream = io.BytesIO()
    small.save(stream, "JPEG", quality=_QUALITY)
    return stream.getvalue()
