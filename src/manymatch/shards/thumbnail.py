"""Small JPEGs of the images, for people to look at in the report."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from manymatch.datasets.place import picture_path, read_place
from manymatch.errors import DataError

_QUALITY = 80


def thumbnail(folder: Path, file: str, side: int) -> bytes | None:
    """`file` of the raw `folder` as a JPEG, at most `side` pixels on its longest side; None without
    a file."""
    path = picture(folder, file)
    if path is None:
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


def picture(folder: Path, file: str) -> Path | None:
    """Where `file` of the raw `folder` lies; None if it is not there."""
    path = picture_path(folder, file, read_place(folder)) if file else None
    return path if path is not None and path.is_file() else None
