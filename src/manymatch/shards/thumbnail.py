"""Small JPEGs of the images, for the report."""

from __future__ import annotations

from pathlib import Path

from manymatch.datasets.image_folder import image_path, read_image_folder
from manymatch.util.images import decoding, opened, small_jpeg

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
        with decoding(path), opened(path) as image:
            return small_jpeg(image, side, _QUALITY)
