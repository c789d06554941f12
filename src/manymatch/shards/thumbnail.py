"""Small JPEGs of the images, for the report."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from manymatch.datasets.image_folder import image_path, read_image_folder
from manymatch.foreign.images import upright_rgb
from manymatch.system.errors import DataError

_QUALITY = 80


class Pictures:
    """The picture files of a raw folder."""

    def __init__(self, raw: Path) -> None:
        self._raw = raw
        self._folder = read_image_folder(raw)

    def path(self, file: str) -> Path | None:
        """The path of `file`; None if the file does not exist."""
        if not file or self._folder.absent:
            return None
        path = image_path(self._raw, file, self._folder)
        return path if path.is_file() else None

    def thumbnail(self, file: str, side: int) -> bytes | None:
        """`file` as a JPEG with at most `side` pixels on its longest side; None without a file."""
        path = self.path(file)
        if path is None:
            return None
        try:
            with Image.open(path) as image:
                image.draft("RGB", (side, side))
                small = upright_rgb(image)
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise DataError(
                f"{path}: not a usable image ({error}). Replace or remove the file"
            ) from None
        small.thumbnail((side, side), Image.Resampling.BICUBIC)
        stream = io.BytesIO()
        small.save(stream, "JPEG", quality=_QUALITY)
        return stream.getvalue()
