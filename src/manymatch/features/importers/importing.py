"""The stage `features` for published features: copy them to a feature store.

Reading and writing run in parallel with a few rows in memory. After an interruption the next run
continues, and the finished file is the same.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manymatch.config import params
from manymatch.features.image_list import read_columns
from manymatch.features.importers import open_published
from manymatch.features.layout import Layout
from manymatch.features.writer import FeatureWriter
from manymatch.util.errors import DataError, SourceError
from manymatch.util.prefetch import ahead
from manymatch.util.progress import track


@dataclass(frozen=True, slots=True)
class Row:
    """The features of one image, which are not read yet."""

    number: int
    """Row of the store."""
    where: str
    """File and line or row, for messages."""
    read: Callable[[], tuple[NDArray[Any], NDArray[Any] | None]]
    """Returns features (k, F) of any float type, and boxes (k, 4) x1 y1 x2 y2 in 0..1 or None."""


@dataclass(frozen=True)
class Published:
    """Published features, of which only headers and names have been read."""

    files: tuple[Path, ...]
    width: int
    """F, the numbers of a region."""
    max_regions: int
    has_boxes: bool
    rows: Callable[[], Iterable[Row]]
    """Yields each row of the store once, in the order of the files."""


_NUMBER = re.compile(r"(?:.*_)?0*(\d+)")
_WORD = re.compile(r"\w+")


@dataclass
class ImageTable:
    """The images of a caption table. Image i is row i of the feature store.

    An image has up to three names: its id, the stem of its file name, and the number at the end of
    either. For example, COCO's TSV files call `COCO_val2014_000000391895.jpg` 391895. If both the
    image and the published features have names with more than a number, the whole names count.
    """

    path: Path
    image_ids: list[str] = field(default_factory=list)
    _names: dict[str, int | None] = field(default_factory=dict)
    _numbers: dict[str, int | None] = field(default_factory=dict)
    _bare_numbers: dict[str, int | None] = field(default_factory=dict)
    """Those of `_numbers` that are a whole id or stem."""
    _rows_by_caption: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def add(self, image_id: str, file: str) -> None:
        """Add the next image."""
        row = len(self.image_ids)
        self.image_ids.append(image_id)
        stem = PurePosixPath(file).stem
        for name in {image_id, stem}:
            _enter(self._names, name, row)
            if number := _number(name):
                _enter(self._numbers, number, row)
                if name.isdecimal():
                    _enter(self._bare_numbers, number, row)

    def add_caption(self, caption: str) -> None:
        """Add a caption to the last image."""
        key, row = _digest(caption), len(self.image_ids) - 1
        self._rows_by_caption[key] = (*self._rows_by_caption.get(key, ()), row)

    def row_named(self, name: str) -> int | None:
        """Return the row of the image called `name` (an id, file name or number), or None.

        Raises:
            DataError: several images have this name.
        """
        stem = PurePosixPath(name).stem
        numbers = self._numbers if stem.isdecimal() else self._bare_numbers
        for rows, key in ((self._names, name), (self._names, stem), (numbers, _number(stem))):
            if key is not None and key in rows:
                row = rows[key]
                if row is None:
                    raise DataError(f"{self.path}: several images have the name '{name}'")
                return row
        return None

    def rows_with_captions(self, captions: Iterable[str]) -> list[int]:
        """Return the rows of the images that have all `captions`, up to case and punctuation."""
        rows = [set(self._rows_by_caption.get(_digest(caption), ())) for caption in captions]
        return sorted(set.intersection(*rows))

    def each_once(self, rows: Iterable[Any], source: Path) -> Iterator[Any]:
        """Yield `rows`, which have `number` and `where`, and check that each image has one.

        Raises:
            DataError: an image has two rows, or at the end, no row in `source`.
        """
        seen: dict[int, str] = {}
        for row in rows:
            if row.number in seen:
                image_id, first = self.image_ids[row.number], seen[row.number]
                raise DataError(f"{row.where}: image '{image_id}' is already in {first}")
            seen[row.number] = row.where
            yield row
        missing = [name for row, name in enumerate(self.image_ids) if row not in seen]
        if missing:
            raise DataError(
                f"{source}: no features of image '{missing[0]}' of {self.path} "
                f"({len(missing)} images have none). Check that both belong to the same dataset"
            )


def read_image_table(captions: Path) -> ImageTable:
    """Read the images of the caption table `captions`.

    Raises:
        DataError: the table is damaged, or the captions of an image are not consecutive.
    """
    images = ImageTable(captions)
    seen: set[str] = set()
    for image_id, file, caption in read_columns(captions, ("image_id", "file", "caption")):
        if not images.image_ids or images.image_ids[-1] != image_id:
            if image_id in seen:
                raise DataError(
                    f"{captions}: captions of image '{image_id}' are not consecutive rows"
                )
            seen.add(image_id)
            images.add(image_id, file)
        images.add_caption(caption)
    return images


def _enter(rows: dict[str, int | None], name: str, row: int) -> None:
    """Map `name` to `row`, or to None if another row has the same name."""
    rows[name] = row if rows.get(name, row) == row else None


def _number(stem: str) -> str | None:
    match = _NUMBER.fullmatch(stem)
    return match[1] if match else None


def _digest(caption: str) -> int:
    """A hash of this process: millions of captions would take much memory."""
    return hash(" ".join(_WORD.findall(caption.lower())))


def import_features(name: str, settings: params.Published, captions: Path, store: Path) -> None:
    """Write the published features of all images in the caption table `captions` to `store`, with
    the `name` of the features. Without `max_regions` in the settings, a format that does not record
    this number (`butd_tsv`) is read twice.

    Raises:
        ConfigError: the format is unknown.
        SourceError: `path` does not exist.
        DataError: a file is damaged (the message names the line or row), or an image has no
            features.
        StorageError: the disk is full.
    """
    path, format = Path(settings.path), settings.format
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder. Correct the 'path' in params.yaml")
    images = read_image_table(captions)
    published = open_published(format, path, images, settings.max_regions)
    files = " ".join(file.name for file in published.files[:8])
    more = f" and {len(published.files) - 8} more" if len(published.files) > 8 else ""
    attributes = {
        "backbone": name,
        "weights_sha256": "unknown",
        "preprocessing": f"published, {format}: {files}{more}",
    }
    content = Layout(
        images.image_ids,
        published.max_regions,
        published.width,
        has_boxes=published.has_boxes,
        attributes=attributes,
    )
    states = [(str(file), file.stat()) for file in published.files]
    inputs = [[file, state.st_size, state.st_mtime_ns] for file, state in states]
    facts = json.dumps([asdict(content), inputs], sort_keys=True)
    with FeatureWriter(store, content, hashlib.sha256(facts.encode()).hexdigest()) as writer:
        left = len(writer.rows_left())
        unread = (row for row in published.rows() if not writer.done[row.number])
        with closing(ahead((row, *row.read()) for row in unread)) as read:
            for row, features, boxes in track(read, f"import {format} {path}", left):
                try:
                    writer.write(row.number, halves(features), boxes)
                except DataError as error:
                    raise DataError(f"{row.where}: {error}") from None


def halves(features: NDArray[Any]) -> NDArray[np.float16]:
    """Round to float16, 40 times faster than NumPy does. Too large numbers become infinity."""
    native = np.require(features, features.dtype.newbyteorder("="), ["C", "W"])
    rounded: NDArray[np.float16] = torch.from_numpy(native).half().numpy()
    return rounded
