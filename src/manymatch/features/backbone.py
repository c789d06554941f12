"""Backbones: a frozen network (or none), and the crops of an image that are its input."""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from manymatch.config.params import Extraction
from manymatch.features.image_list import Located, Picture
from manymatch.features.layout import FeatureType
from manymatch.networks.backbones.normalised import Normalised
from manymatch.util.images import read_crops

WHOLE = np.array([[0.0, 0.0, 1.0, 1.0]], np.float32)
"""The crop of the whole image."""
CONTEXT = 0.1
"""Margin of a region's crop on each side, as a share of the width or height of the box."""


@dataclass(frozen=True)
class Sources:
    """What a backbone is built from: the data set's raw folder, and the settings of the kind."""

    raw: Path
    settings: Extraction


class Backbone:
    """Converts an image into regions: crops -> network -> features (crops * cells, F).

    `network` maps uint8 pixels (b, 3, size, size) to (b, cells, F). Without a network the regions
    are the pixels, uint8 with F = 3.
    """

    full_size = False
    """Whether `read` needs the picture in its full size. A second crop would cut off more."""
    finds_boxes = False
    """Whether the backbone detects the boxes of an image. If not, `boxes` returns known boxes."""
    most_crops = 1
    """The most crops of an image."""
    resample = Image.Resampling.BICUBIC
    """The filter for crops."""

    def __init__(
        self,
        network: nn.Module | None,
        *,
        size: int,
        width: int,
        max_regions: int,
        preprocessing: str,
        weights_sha256: str | None = None,
    ) -> None:
        """`weights_sha256`: the hash of the weights' file. With None, the hash covers the names and
        values of all weights."""
        self.network = None if network is None else network.eval().requires_grad_(False)
        self.dtype: FeatureType = "uint8" if network is None else "float16"
        self.size = size
        self.width = width
        self.max_regions = max_regions
        self.preprocessing = preprocessing
        self.weights_sha256 = weights_sha256 or ("none" if network is None else _digest(network))
        self.facts: dict[str, str] = {}
        """Further facts for the store, from which the backbone is built again."""

    def crops(self, image_id: str) -> NDArray[np.float32] | None:
        """Return the crops (c, 4) that the network sees, x1 y1 x2 y2 in 0..1, c >= 1.

        None stands for the largest square in the middle of the image.
        """
        return WHOLE

    def boxes(self, image_id: str) -> NDArray[np.float32] | None:
        """Return the box (k, 4) of each region, x1 y1 x2 y2 in 0..1, or None for no boxes."""
        return None

    def read(self, image: Picture) -> tuple[NDArray[np.uint8], NDArray[np.float32] | None]:
        """Return the pixels (c, size, size, 3) of an image, and its boxes."""
        pixels = read_crops(image.source, self.crops(image.image_id), self.size)
        return pixels, self.boxes(image.image_id)


class GridBackbone(Backbone):
    """A backbone on the whole image, resized to a square. Regions are cells of the final map."""

    def __init__(
        self,
        network: nn.Module,
        mean: list[float],
        std: list[float],
        *,
        size: int,
        width: int,
        scaling: str,
    ) -> None:
        """`network`: see `Normalised`; its map has one cell per 32 x 32 pixels, rounded up."""
        cells = -(-size // 32)
        super().__init__(
            Normalised(network, mean, std),
            size=size,
            width=width,
            max_regions=cells * cells,
            preprocessing=f"RGB, squashed to {size} x {size} bicubic, {scaling}",
        )
        self._boxes = grid_boxes(cells)

    def boxes(self, image_id: str) -> NDArray[np.float32]:
        return self._boxes


class RegionBackbone(Backbone):
    """One vector for each box of an image: the mean over the cells of another backbone.

    A box is cropped with some context and squashed to a square.
    """

    full_size = True

    def __init__(
        self,
        inner: Backbone,
        max_regions: int,
        *,
        detector: nn.Module | None = None,
        weights_sha256: str | None = None,
    ) -> None:
        """`detector`: a module that is moved to a device together with the network."""
        assert inner.network is not None
        crops = f"RGB, boxes with {CONTEXT:.0%} context "
        super().__init__(
            _Pooled(inner.network, detector),
            size=inner.size,
            width=inner.width,
            max_regions=max_regions,
            preprocessing=inner.preprocessing.replace("RGB, ", crops, 1) + ", mean over cells",
            weights_sha256=weights_sha256,
        )
        self.resample, self.most_crops = inner.resample, max_regions

    def read(self, image: Picture) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        boxes = image.boxes if isinstance(image, Located) else self.boxes(image.image_id)
        assert boxes is not None
        margin = CONTEXT * (boxes[:, 2:] - boxes[:, :2])
        crops = np.clip(boxes + np.concatenate([-margin, margin], axis=1), 0.0, 1.0)
        return read_crops(image.source, crops, self.size, self.resample), boxes


class LocatingBackbone(RegionBackbone, ABC):
    """A `RegionBackbone` that detects the boxes of an image before `read`."""

    finds_boxes = True

    @abstractmethod
    def prepare(self, image: Picture) -> Any:
        """Return what `locate` needs of an image. Several threads may call this."""

    @abstractmethod
    def locate(self, prepared: Any) -> Located:
        """Return a prepared image with its boxes. Several threads may call this."""


class _Pooled(nn.Module):
    """The mean over cells: (b, cells, F) -> (b, 1, F)."""

    def __init__(self, network: nn.Module, detector: nn.Module | None) -> None:
        super().__init__()
        self.network, self.detector = network, detector

    def forward(self, pixels: Tensor) -> Tensor:
        cells: Tensor = self.network(pixels)
        return cells.mean(dim=1, keepdim=True)


def grid_boxes(cells: int) -> NDArray[np.float32]:
    """Return the cells (cells * cells, 4) of a grid over the image, row by row."""
    y, x = np.divmod(np.arange(cells * cells), cells)
    return (np.stack([x, y, x + 1, y + 1], axis=1) / cells).astype(np.float32)


def _digest(network: nn.Module) -> str:
    """SHA-256 of all parameters and buffers, sorted by name. The file's format does not count."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


class Detector(ABC):
    """Converts an image of any size into at most `max_regions` regions with boxes."""

    dtype: FeatureType = "float16"
    finds_boxes = True
    slow_on_gpu: str | None = None
    """A message for the user of a GPU that says what is missing for full speed. None: nothing."""
    network: nn.Module
    """The network in evaluation mode, without gradients."""
    width: int
    max_regions: int
    weights_sha256: str
    preprocessing: str

    @abstractmethod
    def prepare(self, image: NDArray[np.uint8]) -> Tensor:
        """Return the network's input for an RGB image (h, w, 3). Several threads may call this."""

    @abstractmethod
    def detect(self, pixels: Tensor) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the features (k, F) and boxes (k, 4), x1 y1 x2 y2 in 0..1, of a prepared image,
        which is on the network's device. Several threads may call this."""
