"""Bottom-up attention's TSV files (Anderson et al., CVPR 2018): one tab-separated line per image,

    image_id  image_w  image_h  num_boxes  boxes  features

with boxes (k, 4) in pixels and features (k, F) as base64 of float32. Ids are COCO's image numbers
or Flickr30K's file names. `path` is one file, or a folder of parts (`*.tsv*`).

Lines of images that are not in the caption table are skipped, because COCO's files also hold images
of other splits.
"""

import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pybase64
from numpy.typing import NDArray

from manymatch.features.importers.importing import ImageTable, Published, Row
from manymatch.util.errors import DataError
from manymatch.util.regular_file import open_regular

MAX_LINE_BYTES = 64 * 2**20
"""100 regions of 2,048 numbers take 1.1 MB."""
MAX_NUMBER = 10**6
_COLUMNS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")
_OTHER_FORMS = {2: ", as VinVL's files have", 10: ", as LXMERT's files have"}
_EDGE = 2.0
"""Detectors exceed the image's edges by a fraction of a pixel, rounding by a whole one."""
_USUAL = (1e-6, 1e6)
"""Features of float32 are between these sizes or zero. Bytes of another type read as float32 are
mostly not."""
_MANY = 64
"""With fewer numbers their type is not questioned."""


@dataclass(frozen=True)
class _Line:
    """A parsed line of the file, with its base64 not yet decoded."""

    number: int
    """Row of the store."""
    count: int
    size: tuple[int, int]
    boxes: memoryview
    features: memoryview
    where: str

    def read(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return _features(self), _boxes(self)


def open_butd_tsv(path: Path, images: ImageTable, max_regions: int | None) -> Published:
    """Open a file or folder of parts; see `importers.open_published`.

    Without `max_regions` all lines are read once to count regions.
    """
    files = tuple(sorted(path.glob("[!._]*.tsv*"))) if path.is_dir() else (path,)
    first = next(_lines(files, images), None)
    if first is None:
        raise DataError(f"{path}: no line of an image of {images.path}")

    def rows() -> Iterator[Row]:
        lines = (Row(line.number, line.where, line.read) for line in _lines(files, images))
        return images.each_once(lines, files[0])

    return Published(
        files=files,
        width=_features(first).shape[1],
        max_regions=max_regions
        or max(line.count for line in images.each_once(_lines(files, images), files[0])),
        has_boxes=True,
        rows=rows,
    )


def _lines(files: tuple[Path, ...], images: ImageTable) -> Iterator[_Line]:
    """Yield the lines of images in the caption table."""
    for path in files:
        with open_regular(path, buffering=2**20) as file:
            lines = iter(lambda: file.readline(MAX_LINE_BYTES), b"")
            for number, line in enumerate(lines, start=1):
                where = f"{path}:{number}"
                if not line.endswith(b"\n") and len(line) == MAX_LINE_BYTES:
                    raise DataError(f"{where}: a line of more than {MAX_LINE_BYTES} B")
                if parsed := _parse(line, images, where):
                    yield parsed


def _parse(line: bytes, images: ImageTable, where: str) -> _Line | None:
    """Parse a line; None if its image is not in the caption table. Long fields are not copied."""
    count = line.count(b"\t") + 1
    if count != len(_COLUMNS):
        raise DataError(
            f"{where}: {count} columns between tabs{_OTHER_FORMS.get(count, ', or cut off')}. "
            f"Write {len(_COLUMNS)} columns: {', '.join(_COLUMNS)}"
        )
    tabs = [-1]
    for _ in _COLUMNS[1:]:
        tabs.append(line.find(b"\t", tabs[-1] + 1))
    name = line[: tabs[1]].decode(errors="replace")
    number = images.row_named(name)
    if number is None:
        return None
    width, height, count = (
        _number(line[tabs[i] + 1 : tabs[i + 1]], f"{where}: {_COLUMNS[i]}") for i in (1, 2, 3)
    )
    if not (width and height and count):
        raise DataError(
            f"{where}: image '{name}' has {count} boxes and {width} x {height} pixels. Give every "
            "image at least one box, such as the whole image"
        )
    end = len(line.rstrip(b"\r\n")) if line.endswith(b"\n") else len(line)
    view = memoryview(line)
    boxes, features = view[tabs[4] + 1 : tabs[5]], view[tabs[5] + 1 : end]
    return _Line(number, count, (width, height), boxes, features, where)


def _number(text: bytes, where: str) -> int:
    """The whole number `text`, which some programs write as 640.0."""
    whole, _, rest = text.strip().partition(b".")
    if not (whole.isdigit() and len(whole) < 10 and int(whole) <= MAX_NUMBER) or rest.strip(b"0"):
        shown = text[:20].decode(errors="replace")
        raise DataError(f"{where}: '{shown}' is not a whole number of at most {MAX_NUMBER:,}")
    return int(whole)


def _decode(line: _Line, name: str, text: memoryview, count: int) -> NDArray[np.float32]:
    """(count, any) floats of the base64 field `name`."""
    try:
        # The standard library's decoder is 40 times slower, and slower than disks.
        values = np.frombuffer(pybase64.b64decode_as_bytearray(text, validate=True), "<f4")
    except (binascii.Error, ValueError) as error:
        python = ". Leave out the b'...' of Python" if bytes(text[:2]) in (b"b'", b'b"') else ""
        raise DataError(f"{line.where}: {name}: not base64 of float32 ({error}){python}") from None
    if not len(values) or len(values) % count:
        raise DataError(f"{line.where}: {name}: {len(values)} numbers for {count} regions")
    return values.reshape(count, -1)


def _features(line: _Line) -> NDArray[np.float32]:
    """(k, F) features, which have to look like float32: base64 does not state its type."""
    features = _decode(line, "features", line.features, line.count)
    sizes = np.abs(features[(features != 0) & np.isfinite(features)])
    unusual = sizes[(sizes < _USUAL[0]) | (sizes > _USUAL[1])]
    fault = ""
    if unusual.size > sizes.size / 10:
        fault = (
            f"{unusual.size:,} of {sizes.size:,} numbers are as small or large as {unusual[0]:.1e}"
        )
    elif _look_like_halves(features):
        fault = "the bytes look like those of float16 or bfloat16"
    elif sizes.size >= _MANY and features.flat[::2].any() != features.flat[1::2].any():
        fault = "every second number is 0, as in float64"
    if fault:
        raise DataError(
            f"{line.where}: features: {fault}. Write base64 of float32, not of another type"
        )
    return features


def _look_like_halves(features: NDArray[np.float32]) -> bool:
    """Whether each number looks like two numbers of 16 bits.

    The last 16 bits of float32 are of all kinds. If they are a number of their own, most have the
    same few exponents. Numbers that were converted to float32 end in zeros, and do not count.
    """
    last = features.view("<u2").reshape(-1, 2)[:, 0]
    kinds = np.flatnonzero(np.bincount(last[last & 0x1FFF != 0]))  # equal numbers count once
    exponents = np.sort(np.bincount(kinds >> 10 & 0x1F, minlength=32))
    return len(kinds) >= _MANY and exponents[-8:].sum() > 0.95 * len(kinds)


def _boxes(line: _Line) -> NDArray[np.float32]:
    """(k, 4) boxes in 0..1."""
    boxes = _decode(line, "boxes", line.boxes, line.count)
    size = np.array([*line.size, *line.size], np.float32)
    if boxes.shape[1] != 4 or not np.isfinite(boxes).all():
        raise DataError(f"{line.where}: boxes: not four finite numbers for each region")
    outside = (boxes < -_EDGE).any() or (boxes > size + _EDGE).any()
    if outside or (boxes[:, :2] > boxes[:, 2:]).any():
        raise DataError(f"{line.where}: boxes: not x1 <= x2, y1 <= y2 inside the image")
    if boxes.max() <= 1:
        raise DataError(
            f"{line.where}: boxes: all in the first pixel of the image. Write pixels, not fractions"
        )
    return np.clip(boxes / size, 0.0, 1.0)
