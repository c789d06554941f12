"""One vector per object: each box of `boxes.parquet`, cropped and pooled by EfficientNet-lite0.

Like the output of a detector, images have different numbers of regions, and regions have boxes.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from manymatch.config.params import Extraction
from manymatch.features import BACKBONES, lite
from manymatch.features.backbone import Backbone, RegionBackbone, Sources
from manymatch.util.errors import DataError
from manymatch.util.parquet_file import read_table

_BOXES = pa.schema([("image_id", pa.string()), ("boxes", pa.list_(pa.list_(pa.float32())))])
SIZE = 128
"""Objects are small parts of an image. 128 px take a third of the time of 224 px."""


def build(name: str, sources: Sources) -> "ObjectBackbone":
    """Return the backbone for the boxes in `sources.raw`.

    Raises:
        DataError: the data set has no boxes.
    """
    settings = Extraction(kind="lite0", size=SIZE, weights=sources.settings.weights)
    inner = lite.build("lite0", Sources(sources.raw, settings))
    return ObjectBackbone(inner, read_boxes(sources.raw / "boxes.parquet"))


class ObjectBackbone(RegionBackbone):
    """Regions are the objects' boxes, in the order of the file."""

    def __init__(self, inner: Backbone, boxes: dict[str, NDArray[np.float32]]) -> None:
        super().__init__(inner, max(map(len, boxes.values())))
        self._boxes = boxes

    def boxes(self, image_id: str) -> NDArray[np.float32]:
        if image_id not in self._boxes:
            raise DataError(
                f"boxes.parquet: no boxes of image '{image_id}'. Download the data set again"
            )
        return self._boxes[image_id]


def read_boxes(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the boxes (k, 4) of each image, x1 y1 x2 y2 in 0..1, by image_id."""
    if not path.is_file():
        others = ", ".join(sorted(set(BACKBONES) - {"objects"}))
        raise DataError(f"{path}: this data set has no boxes, which 'objects' needs. Use {others}")
    table = read_table(path, _BOXES, "Download the data set again.").to_pydict()
    if not table["image_id"]:
        raise DataError(f"{path}: the table is empty. Download the data set again")
    arrays: dict[str, NDArray[np.float32]] = {}
    for image_id, boxes in zip(table["image_id"], table["boxes"], strict=True):
        try:
            arrays[image_id] = array = np.array(boxes or [], np.float32).reshape(-1, 4)
        except ValueError:
            raise DataError(f"{path}: image '{image_id}': a box is not four numbers") from None
        ordered = (array[:, :2] < array[:, 2:]).all() and (array >= 0).all() and (array <= 1).all()
        if not len(array) or not ordered:
            raise DataError(f"{path}: image '{image_id}': boxes must be x1 < x2, y1 < y2, in 0..1")
    return arrays
