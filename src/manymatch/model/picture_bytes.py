"""Pictures that come as bytes: checked, decoded, made small.

`util.images` imports NumPy, so it is imported for a picture only: the start of a service is
sooner without it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image

MOST_PIXELS = 40_000_000
"""Larger pictures are refused as a query."""
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


@contextmanager
def _opened(data: bytes, most: int | None = None) -> Iterator[Image.Image]:
    from manymatch.util.images import decoding, opened

    remedy = "Send a JPEG, PNG, WebP, BMP, GIF or TIFF file."
    with _DECODERS, decoding(data, remedy), opened(data, most, "Send a smaller picture.") as image:
        yield image
