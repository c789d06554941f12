"""What a backbone is: a frozen network (or none), and the crops of an image that it looks at."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

WHOLE = np.array([[0.0, 0.0, 1.0, 1.0]], np.float32)
"""The crop that is the whole image."""


@dataclass(frozen=True)
class Sources:
    """What a backbone may be built from."""

    raw: Path
    """The dataset's raw folder."""
    weights: str | None
    """A local file, folder or hub name; None takes the backbone's default."""


class Backbone(ABC):
    """Turns an image into regions: crops -> network -> (crops * cells, F) features.

    `network` takes uint8 pixels (b, 3, size, size) and gives (b, cells, F). Without one the
    regions are the pixels themselves, uint8 with F = 3.
    """

    def __init__(
        self,
        network: nn.Module | None,
        *,
        size: int,
        width: int,
        max_regions: int,
        preprocessing: str,
    ) -> None:
        self.network = None if network is None else network.eval().requires_grad_(False)
        self.dtype = "uint8" if network is None else "float16"
        self.size = size
        self.width = width
        self.max_regions = max_regions
        self.preprocessing = preprocessing
        self.weights_sha256 = "none" if network is None else _digest(network)

    @abstractmethod
    def crops(self, image_id: str) -> NDArray[np.float32]:
        """(c, 4) what the network sees of the image, x1 y1 x2 y2 in 0..1; c >= 1."""

    @abstractmethod
    def boxes(self, image_id: str) -> NDArray[np.float32] | None:
        """(k, 4) the place of each region in the image, x1 y1 x2 y2 in 0..1; None if the store
        is to have no boxes."""


class GridBackbone(Backbone):
    """Sees the whole image, squashed to a square; its regions are the cells of the final map."""

    def __init__(
        self, network: nn.Module, *, size: int, width: int, cells: int, preprocessing: str
    ) -> None:
        super().__init__(
            network,
            size=size,
            width=width,
            max_regions=cells * cells,
            preprocessing=preprocessing,
        )
        self._boxes = grid_boxes(cells)

    def crops(self, image_id: str) -> NDArray[np.float32]:
        return WHOLE

    def boxes(self, image_id: str) -> NDArray[np.float32]:
        return self._boxes


class Normalised(nn.Module):
    """`network((pixels - mean) / std)` for uint8 pixels (b, 3, H, W); mean and std in 0..255.

    The network gives a map (b, F, h, w); out come its cells, row by row: (b, h * w, F).
    """

    mean: Tensor
    std: Tensor

    def __init__(self, network: nn.Module, mean: list[float], std: list[float]) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        maps: Tensor = self.network((pixels - self.mean) / self.std)
        return maps.flatten(2).transpose(1, 2)


def channels_last(network: nn.Module) -> nn.Module:
    """The layout in which convolutions are fastest, and in which decoded pixels come."""
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def grid_boxes(cells: int) -> NDArray[np.float32]:
    """(cells * cells, 4) the cells of a grid over the image, row by row."""
    y, x = np.divmod(np.arange(cells * cells), cells)
    return (np.stack([x, y, x + 1, y + 1], axis=1) / cells).astype(np.float32)


def _digest(network: nn.Module) -> str:
    """SHA-256 of all parameters and buffers, by name: the same wherever they were loaded from."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()
