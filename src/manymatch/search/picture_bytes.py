"""Pictures that come as bytes: checked, decoded, made small.

`foreign.images` imports NumPy, so it is imported for a picture only: the start of a service is
sooner without it.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image

from manymatch.system.errors import DataError, first_line

MOST_PIXELS = 40_000_000
"""Larger pictures are refused as a query."""
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
_SIDE = 320
_AT_ONCE = threading.BoundedSemaphore(2)
"""A decoded picture can take 200 MB, so only two are decoded at once."""


def decoded(data: bytes, most: int | None = None) -> Image.Image:
    """The picture in RGB.

    Raises:
        DataError: `data` is not a picture, is damaged, or has more than `most` pixels (None:
            `foreign.images.MAX_PIXELS`).
    """
    from manymatch.foreign.images import upright_rgb

    with _opened(data, most) as image:
        return upright_rgb(image)


def thumbnail(data: bytes) -> bytes:
    """A JPEG of at most 320 x 320 pixels, turned upright; raises the same as `decoded`."""
    from manymatch.foreign.images import upright_rgb

    with _opened(data) as image:
        image.draft("RGB", (_SIDE, _SIDE))
        small = upright_rgb(image)
        small.thumbnail((_SIDE, _SIDE))
        file = io.BytesIO()
        small.save(file, "JPEG", quality=82)
        return file.getvalue()


def media_type(data: bytes) -> str:
    """The media type of a picture, such as `image/png`; raises the same as `decoded`."""
    with _opened(data) as image:
        return Image.MIME[str(image.format)]


@contextmanager
def _opened(data: bytes, most: int | None = None) -> Iterator[Image.Image]:
    from manymatch.foreign.images import MAX_PIXELS

    most = most or MAX_PIXELS
    with _AT_ONCE:
        try:
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                if image.width * image.height > most:
                    raise DataError(
                        f"picture: {image.width} x {image.height} pixels, at most {most:,} are "
                        "read. Send a smaller picture."
                    )
                yield image
        except DataError:
            raise
        except Exception as error:  # Pillow's decoders raise almost anything on damaged files.
            raise DataError(
                f"picture: cannot be read ({first_line(error)}). Send a JPEG, PNG, WebP, BMP, GIF "
                "or TIFF file."
            ) from None
