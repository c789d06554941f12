"""Detectors: frozen networks that find the regions of an image."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from manymatch.features.backbone import Sources


@dataclass(frozen=True)
class DetectorSources(Sources):
    """What a detector is built from: also the numbers of regions."""

    regions: tuple[int, int] = (36, 36)
    """The minimum and maximum number of regions of an image."""


@dataclass(frozen=True)
class Regions:
    """`features` (k, F) and `boxes` (k, 4), x1 y1 x2 y2 in 0..1."""

    features: NDArray[np.float32]
    boxes: NDArray[np.float32]


class Detector(ABC):
    """Converts an image of any size into at most `max_regions` regions with boxes."""

    dtype = "float16"

    def __init__(
        self,
        network: nn.Module,
        *,
        width: int,
        max_regions: int,
        weights_sha256: str,
        preprocessing: str,
    ) -> None:
        self.network = network.eval().requires_grad_(False)
        self.width = width
        self.max_regions = max_regions
        self.weights_sha256 = weights_sha256
        self.preprocessing = preprocessing

    @abstractmethod
    def prepare(self, image: NDArray[np.uint8]) -> Tensor:
        """Return the network's input for an RGB image (h, w, 3). Several threads may call this."""

    @abstractmethod
    def detect(self, pixels: Tensor) -> Regions:
        """Return the regions of a prepared image, which is on the network's device."""
