"""Bottom-up attention's TSV files (Anderson et al., CVPR 2018): one line an image, tab-separated,

    image_id  image_w  image_h  num_boxes  boxes  features

with boxes (k, 4) in pixels and features (k, F) as base64 of float32. Ids are the numbers of COCO
images or the names of Flickr30K's files. `path` is one file, or a folder of parts (`*.tsv*`).

Lines of images that the caption table does not name are passed over: the files of COCO hold
images of other splits too.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pybase64
from numpy.typing import NDArray

from manymatch.features.importers.published import Published, Row, Wanted
from manymatch.features.importers.table import Table
from manymatch.system.errors import DataError

MAX_LINE_BYTES = 64 * 2**20
"""100 regions take 1.1 MB."""
MAX_NUMBER = 10**6
_FIELDS = 6


@dataclass(frozen=True)
class _Line:
    """A line of the file, its numbers read and its base64 not yet."""

    number: int
    """Row of the store."""
    count: int
    size: tuple[int, int]
    boxes: memoryview
    features: memoryview
    where: str


def open_published(path: Path, table: Table, max_regions: int | None) -> Published:
    """See `importers.open_published`; without `max_regions` all lines are read to find it."""
    files = (path,) if path.is_file() else tuple(sorted(path.glob("*.tsv*")))
    first = next(_lines(files, table), None)
    if first is None:
        raise DataError(f"{path}: no line of an image of {table.path}")
    return Published(
        files=files,
        width=_decode(first, "features", first.features, first.count).shape[1],
        max_regions=max_regions or max(line.count for line in _complete(files, table)),
        has_boxes=True,
        rows=lambda wanted: _rows(files, table, wanted),
    )


def _rows(files: tuple[Path, ...], table: Table, wanted: Wanted) -> Iterator[Row]:
    for line in _complete(files, table):
        if wanted(line.number):
            features = _decode(line, "features", line.features, line.count)
            yield Row(line.number, features, _boxes(line), line.where)


def _complete(files: tuple[Path, ...], table: Table) -> Iterator[_Line]:
    """The lines of the table's images: a `DataError` if one has two, or at the end none."""
    seen: dict[int, str] = {}
    for line in _lines(files, table):
        if line.number in seen:
            image_id, first = table.image_ids[line.number], seen[line.number]
            raise DataError(f"{line.where}: image '{image_id}' is in {first} already")
        seen[line.number] = line.where
        yield line
    missing = [name for row, name in enumerate(table.image_ids) if row not in seen]
    if missing:
        count = len(missing)
        raise DataError(f"{files[0]}: no line of image '{missing[0]}' ({count} images have none)")


def _lines(files: tuple[Path, ...], table: Table) -> Iterator[_Line]:
    """The lines of the table's images."""
    for path in files:
        for place, line in _raw_lines(path):
            parsed = _parse(line, table, place)
            if parsed is not None:
                yield parsed


def _raw_lines(path: Path) -> Iterator[tuple[str, bytes]]:
    with path.open("rb", buffering=2**20) as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES):
            number += 1
            if not line.endswith(b"\n") and len(line) == MAX_LINE_BYTES:
                raise DataError(f"{path}:{number}: longer than {MAX_LINE_BYTES} B")
            yield f"{path}:{number}", line


def _parse(line: bytes, table: Table, where: str) -> _Line | None:
    """None for an image that is not in the table. The long fields are not copied."""
    tabs = [-1]
    for _ in range(_FIELDS - 1):
        tabs.append(line.find(b"\t", tabs[-1] + 1))
        if tabs[-1] < 0:
            raise DataError(f"{where}: not {_FIELDS} fields between tabs, or cut off")
    name = line[: tabs[1]].decode(errors="replace")
    number = table.named(name)
    if number is None:
        return None
    width, height, count = (_number(line[tabs[i] + 1 : tabs[i + 1]], where) for i in (1, 2, 3))
    end = len(line.rstrip(b"\r\n")) if line.endswith(b"\n") else len(line)
    view = memoryview(line)
    boxes, features = view[tabs[4] + 1 : tabs[5]], view[tabs[5] + 1 : end]
    return _Line(number, count, (width, height), boxes, features, where)


def _number(text: bytes, where: str) -> int:
    if not (text.isdigit() and len(text) < 10 and 1 <= int(text) <= MAX_NUMBER):
        raise DataError(f"{where}: '{text[:20].decode(errors='replace')}' is no size or count")
    return int(text)


def _decode(line: _Line, name: str, text: memoryview, count: int) -> NDArray[np.float32]:
    """(count, any) the floats of a base64 field."""
    try:
        # The standard library's decoder is forty times as slow, which is slower than disks.
        values = np.frombuffer(pybase64.b64decode_as_bytearray(text, validate=True), "<f4")
    except (binascii.Error, ValueError) as error:
        raise DataError(f"{line.where}: {name}: no base64 of float32 ({error})") from None
    if not len(values) or len(values) % count:
        raise DataError(f"{line.where}: {name}: {len(values)} numbers for {count} regions")
    return values.reshape(count, -1)


def _boxes(line: _Line) -> NDArray[np.float32]:
    """(k, 4) as parts of the image; detectors go beyond its edges by a fraction of a pixel."""
    boxes = _decode(line, "boxes", line.boxes, line.count)
    size = np.array([*line.size, *line.size], np.float32)
    if boxes.shape[1] != 4 or not np.isfinite(boxes).all():
        raise DataError(f"{line.where}: boxes: not four finite numbers a region")
    if (boxes < -1).any() or (boxes > size + 1).any() or (boxes[:, :2] > boxes[:, 2:]).any():
        raise DataError(f"{line.where}: boxes: not x1 <= x2, y1 <= y2 inside the image")
    return np.clip(boxes / size, 0.0, 1.0)
