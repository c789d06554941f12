"""One vector per object: each box of `boxes.parquet`, cropped and pooled by EfficientNet-lite0.

Like the output of a detector, images have different numbers of regions, and regions have boxes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor, nn

from manymatch.features import BACKBONES
from manymatch.features.backbone import Backbone, Sources
from manymatch.features.lite import MEAN, STD, WIDTH, load_network
from manymatch.networks.backbones.normalised import Normalised
from manymatch.util.errors import DataError
from manymatch.util.parquet_file import read_table

_BOXES = pa.schema([("image_id", pa.string()), ("boxes", pa.list_(pa.list_(pa.float32())))])
SIZE = 128
"""Objects are small parts of an image. 128 px take a third of the time of 224 px."""
CONTEXT = 0.1
"""Margin of a crop on each side, as a share of the width or height of the box."""


def build(name: str, sources: Sources) -> ObjectBackbone:
    """Return the backbone for the boxes in `sources.raw`.

    Raises:
        DataError: the dataset has no boxes.
    """
    return ObjectBackbone(
        load_network("lite0", sources.weights, SIZE), read_boxes(sources.raw / "boxes.parquet")
    )


class ObjectBackbone(Backbone):
    """Regions are the objects' boxes, in the order of the file."""

    def __init__(self, network: nn.Module, boxes: dict[str, NDArray[np.float32]]) -> None:
        super().__init__(
            _Pooled(Normalised(network, MEAN, STD)),
            size=SIZE,
            width=WIDTH,
            max_regions=max(map(len, boxes.values())),
            preprocessing=f"RGB, boxes with {CONTEXT:.0%} context squashed to "
            f"{SIZE} x {SIZE} bicubic, (x - 127) / 128, mean over cells",
        )
        self._boxes = boxes

    def crops(self, image_id: str) -> NDArray[np.float32]:
        boxes = self.boxes(image_id)
        margin = CONTEXT * (boxes[:, 2:] - boxes[:, :2])
        return np.clip(boxes + np.concatenate([-margin, margin], axis=1), 0.0, 1.0)

    def boxes(self, image_id: str) -> NDArray[np.float32]:
        if image_id not in self._boxes:
            raise DataError(
                f"boxes.parquet: no boxes of image '{image_id}'. Download the dataset again"
            )
        return self._boxes[image_id]


class _Pooled(nn.Module):
    """The mean over cells: (b, cells, F) -> (b, 1, F)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, pixels: Tensor) -> Tensor:
        cells: Tensor = self.network(pixels)
        return cells.mean(dim=1, keepdim=True)


def read_boxes(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the boxes (k, 4) of each image, x1 y1 x2 y2 in 0..1, by image_id."""
    if not path.is_file():
        others = ", ".join(sorted(set(BACKBONES) - {"objects"}))
        raise DataError(f"{path}: this dataset has no boxes, which 'objects' needs. Use {others}")
    table = read_table(path, _BOXES, "Download the dataset again.").to_pydict()
    if not table["image_id"]:
        raise DataError(f"{path}: the table is empty. Download the dataset again")
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
