"""Pictures that come as bytes: checked, decoded, made small.

`util.images` imports NumPy, so it is imported for a picture only: the start of a service is
sooner without it.
"""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from PIL import Image

from manymatch.util.errors import DataError

MOST_PIXELS = 40_000_000
"""Larger pictures are refused as a query."""
_MOST_STRIPS, _MOST_SCANS = 100_000, 2_000
"""Strips or tiles of a TIFF file, of which Pillow makes a tuple of 300 bytes each, and scans of a
JPEG, each of which passes over the whole picture. Photographs have a hundredth of them."""
_SIDE, _QUALITY = 320, 82
_DECODERS = threading.BoundedSemaphore(2)
"""A decoded picture can take 200 MB, so only two are decoded at once."""


def decoded(data: bytes, most: int | None = None) -> Image.Image:
    """The picture in RGB.

    Raises:
        DataError: `data` is not a picture, is damaged, or has more than `most` pixels (None:
            `util.images.MAX_PIXELS`).
    """
    from manymatch.util.images import upright_rgb

    with _opened(data, most) as image:
        return upright_rgb(image)


def thumbnail(data: bytes) -> bytes:
    """A JPEG of at most 320 x 320 pixels, turned upright; raises the same as `decoded`."""
    from manymatch.util.images import small_jpeg

    with _opened(data) as image:
        return small_jpeg(image, _SIDE, _QUALITY)


def media_type(data: bytes) -> str:
    """The media type of a picture, such as `image/png`; raises the same as `decoded`."""
    with _opened(data) as image:
        # An MPO file is a JPEG of a camera with further pictures behind it.
        return Image.MIME["JPEG" if image.format == "MPO" else str(image.format)]


def refuse_bomb(stream: BinaryIO, name: object) -> None:
    """Refuse a file of a few megabytes that takes minutes or gigabytes to decode.

    Raises:
        DataError: a TIFF file of too many strips or tiles, or a JPEG of too many scans.
    """
    head, scans = stream.read(16), 0
    if head.startswith(b"\xff\xd8"):
        scans = sum(data.count(b"\xff\xda") for data in iter(lambda: stream.read(2**20), b""))
    if scans > _MOST_SCANS or _strips(stream, head) > _MOST_STRIPS:
        raise DataError(f"{name}: too many scans, strips or tiles. Save the picture again")


def _strips(stream: BinaryIO, head: bytes) -> int:
    """The number of strips or tiles in the first directory of a TIFF file; 0: no TIFF file."""
    order = {b"II": "little", b"MM": "big"}.get(head[:2])
    if order is None:
        return 0

    def number(data: bytes) -> int:
        return int.from_bytes(data, order)  # type: ignore[arg-type]

    width = 8 if number(head[2:4]) == 43 else 4  # 43: BigTIFF
    try:
        stream.seek(number(head[width : 2 * width]))
    except (OSError, OverflowError):
        return 0  # Pillow refuses the file
    size, entries = 4 + 2 * width, number(stream.read(8 if width == 8 else 2))
    table = stream.read(min(entries, 2**16) * size)
    starts = range(0, len(table), size)
    of_strips = (at for at in starts if number(table[at : at + 2]) in (273, 324))
    return max((number(table[at + 4 : at + 4 + width]) for at in of_strips), default=0)


@contextmanager
def _opened(data: bytes, most: int | None = None) -> Iterator[Image.Image]:
    from manymatch.util.images import decoding, opened

    refuse_bomb(io.BytesIO(data), "the picture")
    remedy = "Send a JPEG, PNG, WebP, BMP, GIF or TIFF file."
    with _DECODERS, decoding(data, remedy), opened(data, most, "Send a smaller picture.") as image:
        yield image
