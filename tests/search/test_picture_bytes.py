"""Pictures from elsewhere: decoded, or refused with one line."""

import io
import subprocess
import sys

import numpy as np
import pytest
from picture_bomb import bomb, strips
from PIL import Image

from manymatch.model.picture_bytes import MOST_PIXELS, decoded, media_type, thumbnail
from manymatch.util.errors import DataError


def written(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


GREY = Image.fromarray(np.arange(60, dtype=np.uint8).reshape(6, 10))


def test_pictures_are_decoded_as_they_are():
    for kind in ("PNG", "BMP", "GIF", "TIFF"):
        data = written(GREY, kind)
        assert np.array_equal(np.asarray(decoded(data)), np.asarray(GREY.convert("RGB")))
        assert media_type(data) == f"image/{kind.lower()}"
    several = written(GREY, "MPO", save_all=True, append_images=[GREY])  # of a camera
    assert media_type(several) == "image/jpeg"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "cannot"),
        (b"no picture at all", "cannot be read: not an image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "cannot"),
        (written(GREY.convert("RGB"), "JPEG")[:200], "cannot"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "cannot"),
        (bomb(8_000, 6_250), "8000 x 6250"),
        (bomb(60_000, 60_000), "cannot"),
        *((strips(100_001, order), "too many scans, strips") for order in "<>"),
        (written(GREY, "JPEG") + b"\xff\xda" * 2_000, "too many scans"),
    ],
)
def test_other_bytes_are_refused_in_one_line(data, words):
    with pytest.raises(DataError, match=words) as raised:
        decoded(data, MOST_PIXELS)
    assert "\n" not in str(raised.value)


def test_pillow_adds_no_second_line():
    """In a process of its own, because pytest replaces the filters of warnings."""
    work = f"import sys; from {decoded.__module__} import *; decoded(sys.stdin.buffer.read())"
    command = [sys.executable, "-c", work]
    done = subprocess.run(command, input=bomb(12_000, 9_000), capture_output=True, check=False)
    assert b"12000 x 9000" in done.stderr and b"Warning" not in done.stderr


def test_a_thumbnail_is_small_and_upright():
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by 90 degrees
    data = written(Image.new("RGB", (1600, 800)), "JPEG", exif=exif.tobytes())
    with Image.open(io.BytesIO(thumbnail(data))) as small:
        assert small.size == (160, 320) and small.format == "JPEG"
