"""Running a backbone or a detector over images, while threads decode the next images.

The features of an image must not depend on where a run was interrupted. So the network always
gets the same number of crops at once, and black crops fill up the last batch: then every crop
goes through the same kernels, and its result does not depend on its neighbours.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manymatch.batch.parallel_map import map_parallel
from manymatch.features.backbone import Backbone, Detector
from manymatch.features.image_list import Picture
from manymatch.features.store import FeatureStore
from manymatch.networks.backbones.normalised import channels_last
from manymatch.util.images import read_image
from manymatch.util.prefetch import map_ahead

_CROP_THREADS = 4
"""Threads that decode crops; Pillow releases the interpreter lock meanwhile."""
_IMAGE_THREADS = 2
"""Threads that decode for a detector, which takes longer for an image than one of the threads."""
_CROPS_ON_CPU = 2
"""Crops at once on the CPU. More do not fit in its caches, and are slower."""


class Extractor:
    """Runs a backbone over batches of images."""

    def __init__(
        self, name: str, backbone: Backbone, device: torch.device, batch_size: int
    ) -> None:
        self.name, self.backbone, self.device = name, backbone, device
        self.batch_size = batch_size
        self.crops_at_once = _CROPS_ON_CPU if device.type == "cpu" else batch_size
        network = backbone.network
        self._network = None if network is None else channels_last(network.to(device))

    def run(self, images: Iterable[Picture]) -> Iterator[Extracted]:
        """Every image with its features and boxes, in the given order."""
        decoded = map_ahead(self._decode, images, 2 * self.batch_size, _CROP_THREADS)
        with contextlib.closing(decoded):
            while batch := list(itertools.islice(decoded, self.batch_size)):
                crops = [pixels for _, pixels, _ in batch]
                cells = self._forward(np.concatenate(crops))
                ends = np.cumsum([len(pixels) for pixels in crops])
                for (image, _, boxes), vectors in zip(
                    batch, np.split(cells, ends[:-1]), strict=True
                ):
                    yield image, vectors.reshape(-1, self.backbone.width), boxes

    def given_boxes(self, image_id: str) -> NDArray[np.float32] | None:
        """(k, 4) the boxes that an image's features depend on; None without boxes."""
        return self.backbone.boxes(image_id)

    @property
    def state(self) -> str:
        """Device and batch, which the features depend on as well."""
        return f"{self.device.type} {self.crops_at_once}"

    def _decode(
        self, image: Picture
    ) -> tuple[Picture, NDArray[np.uint8], NDArray[np.float32] | None]:
        """The image with its crops (c, S, S, 3) and the boxes of its regions."""
        return image, *self.backbone.read(image)

    def _forward(self, pixels: NDArray[np.uint8]) -> NDArray[Any]:
        """(c, S, S, 3) -> (c, cells, F), with `crops_at_once` crops in every pass."""
        if self._network is None:
            return pixels
        count = self.crops_at_once
        parts = [pixels[start : start + count] for start in range(0, len(pixels), count)]
        # The layers are small: dividing a layer among the cores costs more than it saves.
        run = map_parallel if self.device.type == "cpu" else map
        return np.concatenate(list(run(self._forward_part, parts)))

    def _forward_part(self, part: NDArray[np.uint8]) -> NDArray[np.float32]:
        missing = self.crops_at_once - len(part)
        full = np.pad(part, ((0, missing), (0, 0), (0, 0), (0, 0))) if missing else part
        assert self._network is not None
        # bfloat16 is 2.5 times faster on the CPU, but its results are 5% off.
        half = torch.autocast(self.device.type, torch.float16, enabled=self.device.type == "cuda")
        with torch.inference_mode(), half:
            # A (c, 3, S, S) view of (c, S, S, 3) already has the channels-last layout.
            channels_first = torch.from_numpy(full).to(self.device).permute(0, 3, 1, 2)
            cells: NDArray[np.float32] = self._network(channels_first).float().cpu().numpy()
        return cells[: len(part)]


class Detection:
    """Runs a detector over images, one after another."""

    def __init__(self, name: str, detector: Detector, device: torch.device) -> None:
        self.name, self.backbone, self.device = name, detector, device
        channels_last(detector.network.to(device))

    def run(self, images: Iterable[Picture]) -> Iterator[Extracted]:
        """Every image with its features and boxes, in the given order."""
        with contextlib.closing(
            map_ahead(self._decode, images, _IMAGE_THREADS, _IMAGE_THREADS)
        ) as decoded:
            for image, pixels in decoded:
                with torch.inference_mode():
                    regions = self.backbone.detect(pixels.to(self.device))
                yield image, regions.features, regions.boxes

    def given_boxes(self, image_id: str) -> None:
        """None: a detector finds the boxes itself."""

    @property
    def state(self) -> str:
        """The device, which the features depend on as well."""
        return self.device.type

    def _decode(self, image: Picture) -> tuple[Picture, Tensor]:
        return image, self.backbone.prepare(read_image(image.source))


Extracted = tuple[Picture, NDArray[Any], NDArray[np.float32] | None]
"""An image, its features (k, F) in float32, float16 or (for pixels) uint8, and its boxes (k, 4)."""


def stored(paths: Sequence[Path], images: Iterable[Picture]) -> Iterator[Extracted]:
    """Every image with its features and boxes, in the given order, from the stores `paths`.

    Each image is in exactly one of the stores. One image is in memory at a time.
    """
    with contextlib.ExitStack() as opened:
        stores = [opened.enter_context(FeatureStore(path)) for path in paths]
        rows = {name: (store, row) for store in stores for row, name in enumerate(store.image_ids)}
        for image in images:
            store, row = rows[image.image_id]
            features, counts, boxes = store.read([row])
            count = int(counts[0])
            yield image, features[0, :count], None if boxes is None else boxes[0, :count]
