"""Running a backbone or a detector over images, while threads decode the next images.

The features of an image must not depend on where a run was interrupted. So the network always
gets the same number of crops at once, and black crops fill up the last batch: then every crop
goes through the same kernels, and its result does not depend on its neighbours.

On a GPU two threads run the network: one starts the next batch or image while the other one waits
for its results.
"""

import contextlib
import itertools
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manymatch.batch.parallel_map import map_parallel, single_core
from manymatch.features.backbone import Backbone, Detector, LocatingBackbone
from manymatch.features.image_list import Located, Picture
from manymatch.features.store import FeatureStore
from manymatch.networks.backbones.normalised import channels_last
from manymatch.networks.device import tf32
from manymatch.util.images import read_image
from manymatch.util.prefetch import map_ahead
from manymatch.util.progress import say

Item = TypeVar("Item")
Result = TypeVar("Result")
_CORES = min(32, len(os.sched_getaffinity(0)))
"""Threads that decode; Pillow releases the interpreter lock meanwhile. The limit bounds the memory
of large images."""
_CROP_THREADS = max(4, _CORES)
_IMAGE_THREADS = 2
"""Threads for a detector on the CPU, which takes longer for an image than one of the threads."""
_CROPS_ON_CPU = 2
"""Crops at once on the CPU. More do not fit in its caches, and are slower."""


class Extractor:
    """Runs a backbone over batches of images."""

    def __init__(
        self, name: str, backbone: Backbone, device: torch.device, batch_size: int
    ) -> None:
        self.name, self.backbone, self.device = name, backbone, device
        self._images_at_once = max(1, batch_size // backbone.most_crops)
        self.crops_at_once = _CROPS_ON_CPU if device.type == "cpu" else batch_size
        # bfloat16 is 2.5 times faster on the CPU, but its results are 5% off.
        self.is_half = device.type == "cuda" and backbone.dtype != "float32"
        network = backbone.network
        self._network = None if network is None else channels_last(network.to(device))

    def run(self, images: Iterable[Picture]) -> "Iterator[Extracted]":
        """Every image with its features and boxes, in the given order."""
        depth = max(2 * self._images_at_once, _CROP_THREADS)
        backbone = self.backbone
        if isinstance(backbone, LocatingBackbone):
            images = _located(backbone, images, self.device)
        decoded = map_ahead(self._decode, images, depth, _CROP_THREADS)
        batches = iter(lambda: list(itertools.islice(decoded, self._images_at_once)), [])
        with (
            contextlib.closing(decoded),
            contextlib.closing(_mapped(self._features, batches, self.device)) as results,
        ):
            for batch in results:
                yield from batch

    def given_boxes(self, image_id: str) -> NDArray[np.float32] | None:
        """(k, 4) the boxes that an image's features depend on; None without boxes."""
        return self.backbone.boxes(image_id)

    @property
    def state(self) -> str:
        """Device and batch, which the features depend on as well."""
        return f"{self.device.type} {self.crops_at_once}"

    def _decode(self, image: Picture) -> "_Decoded":
        """The image with its crops (c, S, S, 3) and the boxes of its regions."""
        return image, *self.backbone.read(image)

    def _features(self, batch: "Sequence[_Decoded]") -> "list[Extracted]":
        crops = [pixels for _, pixels, _ in batch]
        cells = self._forward(np.concatenate(crops))
        ends = np.cumsum([len(pixels) for pixels in crops])
        return [
            (image, vectors.reshape(-1, self.backbone.width), boxes)
            for (image, _, boxes), vectors in zip(batch, np.split(cells, ends[:-1]), strict=True)
        ]

    def _forward(self, pixels: NDArray[np.uint8]) -> NDArray[Any]:
        """(c, S, S, 3) -> (c, cells, F), with `crops_at_once` crops in every pass."""
        if self._network is None:
            return pixels
        count = self.crops_at_once
        parts = [pixels[start : start + count] for start in range(0, len(pixels), count)]
        # The layers are small: dividing a layer among the cores costs more than it saves.
        run = map_parallel if self.device.type == "cpu" else map
        return np.concatenate(list(run(self._forward_part, parts)))

    def _forward_part(self, part: NDArray[np.uint8]) -> NDArray[Any]:
        missing = self.crops_at_once - len(part)
        full = np.pad(part, ((0, missing), (0, 0), (0, 0), (0, 0))) if missing else part
        assert self._network is not None
        half = torch.autocast(self.device.type, torch.float16, enabled=self.is_half)
        # Features in float32 are exact on a GPU as well.
        exact = contextlib.nullcontext() if self.is_half else tf32(False)
        with torch.inference_mode(), half, exact:
            # A (c, 3, S, S) view of (c, S, S, 3) already has the channels-last layout.
            channels_first = torch.from_numpy(full).to(self.device).permute(0, 3, 1, 2)
            cells: NDArray[Any] = self._network(channels_first).cpu().numpy()
        return cells[: len(part)]


def _located(
    backbone: LocatingBackbone, images: Iterable[Picture], device: torch.device
) -> Iterator[Located]:
    """Every image with its boxes. One core finds the boxes of an image, or the GPU."""
    prepared = map_ahead(backbone.prepare, images, _CROP_THREADS, _CROP_THREADS)
    with contextlib.closing(prepared):
        if device.type == "cpu":
            for batch in iter(lambda: list(itertools.islice(prepared, _CORES)), []):
                yield from map_parallel(backbone.locate, batch)
        else:
            yield from _mapped(backbone.locate, prepared, device)


class Detection:
    """Runs a detector over images, one after another; on a GPU two are on their way."""

    def __init__(self, name: str, detector: Detector, device: torch.device) -> None:
        self.name, self.backbone, self.device = name, detector, device
        channels_last(detector.network.to(device))
        if device.type != "cpu" and detector.slow_on_gpu:
            say(detector.slow_on_gpu)

    def run(self, images: Iterable[Picture]) -> "Iterator[Extracted]":
        """Every image with its features and boxes, in the given order."""
        threads = _IMAGE_THREADS if self.device.type == "cpu" else max(_IMAGE_THREADS, _CORES)
        decoded = map_ahead(self._decode, images, threads, threads)
        with (
            contextlib.closing(decoded),
            contextlib.closing(_mapped(self._detect, decoded, self.device)) as results,
        ):
            yield from results

    def given_boxes(self, image_id: str) -> None:
        """None: a detector finds the boxes itself."""

    @property
    def state(self) -> str:
        """The device, which the features depend on as well."""
        return self.device.type

    def _decode(self, image: Picture) -> tuple[Picture, Tensor]:
        if self.device.type == "cpu":
            return image, self.backbone.prepare(read_image(image.source))
        with single_core():  # the other cores decode other images
            return image, self.backbone.prepare(read_image(image.source)).pin_memory()

    def _detect(self, decoded: tuple[Picture, Tensor]) -> "Extracted":
        image, pixels = decoded
        with torch.inference_mode():
            return image, *self.backbone.detect(pixels.to(self.device, non_blocking=True))


def _mapped(
    work: Callable[[Item], Result], items: Iterable[Item], device: torch.device
) -> Generator[Result, None, None]:
    """`work(item)` for every item, in the order of the items; on a GPU in two threads."""
    if device.type == "cpu":
        return (work(item) for item in items)
    return map_ahead(work, items, depth=1, threads=2)


_Decoded = tuple[Picture, NDArray[np.uint8], NDArray[np.float32] | None]
"""An image, its crops (c, S, S, 3), and the boxes (k, 4) of its regions."""
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
