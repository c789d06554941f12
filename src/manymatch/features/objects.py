"""One vector per object: each box of a table, cropped and pooled by EfficientNet-lite0.

The table is the data set's `boxes.parquet` or, with the key `boxes`, the output of any detector.
Images have different numbers of regions, and regions have boxes.
"""

from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from manymatch.config.params import Extraction
from manymatch.features import BACKBONES, lite
from manymatch.features.backbone import WHOLE, Backbone, RegionBackbone, Sources
from manymatch.util.errors import DataError
from manymatch.util.parquet_file import foreign_rows, read_table

_BOXES = pa.schema([("image_id", pa.string()), ("boxes", pa.list_(pa.list_(pa.float32())))])
SIZE = 128
"""Objects are small parts of an image. 128 px take a third of the time of 224 px."""


def build(name: str, sources: Sources) -> "ObjectBackbone":
    """Return the backbone for the boxes that `sources.settings` names, or for those in
    `sources.raw`.

    Raises:
        DataError: there are no boxes, or the table is damaged.
    """
    settings = Extraction(kind="lite0", size=SIZE, weights=sources.settings.weights)
    inner = lite.build("lite0", Sources(sources.raw, settings))
    if sources.settings.boxes is not None:
        path = Path(sources.settings.boxes)
        return ObjectBackbone(inner, detected_boxes(path, sources.settings.regions[1]), path)
    path = sources.raw / "boxes.parquet"
    return ObjectBackbone(inner, read_boxes(path), path)


class ObjectBackbone(RegionBackbone):
    """Regions are the objects' boxes, in the order of the file."""

    def __init__(self, inner: Backbone, boxes: dict[str, NDArray[np.float32]], path: Path) -> None:
        """`boxes`: the boxes (k, 4) of each image in `path`, by image_id."""
        super().__init__(inner, max(map(len, boxes.values())))
        self._boxes, self._path = boxes, path

    def boxes(self, image_id: str) -> NDArray[np.float32]:
        if image_id not in self._boxes:
            raise DataError(f"{self._path}: no boxes of image '{image_id}'. Make the table again")
        return self._boxes[image_id]


def detected_boxes(path: Path, most: int) -> dict[str, NDArray[np.float32]]:
    """Return the regions (k, 4) of each image: the whole picture, then the first `most - 1` boxes.

    Args:
        path: a Parquet table with `boxes` (k lists of x1 y1 x2 y2 in 0..1, best first; none or null
            for an image without detections), and `image_id` or `file`: a file's name whose stem is
            the image's id.
        most: the most regions of an image.

    Raises:
        DataError: the table is damaged, a column is missing, or an image has two rows.
    """
    regions: dict[str, NDArray[np.float32]] = {}
    for number, row in enumerate(foreign_rows(path), 1):
        where = f"{path}: row {number}"
        key = "image_id" if "image_id" in row else "file"
        if not row.keys() >= {key, "boxes"}:
            raise DataError(f"{path}: expected the columns 'boxes', and 'image_id' or 'file'")
        name = str(row[key]) if key == "image_id" else PurePosixPath(str(row[key])).stem
        if name in regions:
            raise DataError(f"{where}: a second row of '{name}'. Leave one row for each image")
        boxes = [] if row["boxes"] is None else row["boxes"]
        if not isinstance(boxes, list):
            raise DataError(f"{where}: 'boxes' is no list of boxes")
        regions[name] = np.concatenate([WHOLE, _checked(boxes[: most - 1], where)])
    if not regions:
        raise DataError(f"{path}: the table is empty")
    return regions


def read_boxes(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the boxes (k, 4) of each image, x1 y1 x2 y2 in 0..1, by image_id."""
    if not path.is_file():
        others = ", ".join(sorted(set(BACKBONES) - {"objects"}))
        raise DataError(f"{path}: this data set has no boxes, which 'objects' needs. Use {others}")
    table = read_table(path, _BOXES, "Download the data set again.").to_pydict()
    if not table["image_id"]:
        raise DataError(f"{path}: the table is empty. Download the data set again")
    arrays = {}
    for image_id, boxes in zip(table["image_id"], table["boxes"], strict=True):
        arrays[image_id] = array = _checked(boxes or [], f"{path}: image '{image_id}'")
        if not len(array):
            raise DataError(f"{path}: image '{image_id}': no boxes")
    return arrays


def _checked(boxes: Any, where: str) -> NDArray[np.float32]:
    """The boxes (k, 4)."""
    try:
        array = np.array(boxes, np.float32).reshape(len(boxes), 4)
    except (TypeError, ValueError):
        raise DataError(f"{where}: a box is not four numbers") from None
    if not ((array[:, :2] < array[:, 2:]).all() and (array >= 0).all() and (array <= 1).all()):
        raise DataError(f"{where}: boxes must be x1 < x2, y1 < y2, in 0..1")
    return array
