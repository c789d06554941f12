"""The stage `features`: images -> feature store, resumable image by image.

What an image's features are must not depend on where a run was interrupted. So the network
always sees the same number of crops at once, the last batch filled up with black: then every
crop goes through the same kernels, and its result does not depend on its neighbours.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from manymatch.errors import ConfigError
from manymatch.features import build_backbone
from manymatch.features.backbone import Backbone, Sources, channels_last
from manymatch.features.images import ImageFile, list_images, read_crops
from manymatch.features.store import FeatureWriter
from manymatch.progress import say, track
from manymatch.side_by_side import side_by_side

Item = TypeVar("Item")
_LOADERS = 4
"""Threads that decode; Pillow lets go of the interpreter while it does."""
_CROPS_ON_CPU = 2
"""Crops at once on the CPU: more do not stay in its caches, and are slower."""


def extract(
    backbone: str,
    raw: Path,
    captions: Path,
    store: Path,
    batch_size: int,
    device: str = "auto",
    weights: str | None = None,
) -> None:
    """Write the features of all images of the table `captions` to `store`.

    A run that is killed goes on where it was; the finished file is the same, byte for byte.

    Args:
        backbone: a name in `features.BACKBONES`.
        raw: the dataset's raw folder, in which the table's files lie.
        batch_size: images (on a GPU: also crops) at once.
        device: "auto" takes the GPU if there is one; or "cpu", "cuda", "cuda:1".
        weights: of the backbone, where not its default.

    Raises:
        ConfigError: unknown backbone or device, or no weights.
        DataError: an image that is missing, damaged, too great or outside `raw`.
        StorageError: the disk is full.
    """
    images = list_images(captions, raw)
    where = pick_device(device)
    extractor = Extractor(build_backbone(backbone, Sources(raw, weights)), where, batch_size)
    with _writer(backbone, images, extractor, store) as writer:
        rows = np.flatnonzero(~writer.done).tolist()
        if len(rows) < len(images):
            say(f"{store}: {len(images) - len(rows)} of {len(images)} images are there already")
        features = extractor.run(images[row] for row in rows)
        name = f"features {backbone} ({where.type})"
        for row, (image, vectors) in zip(rows, track(features, name, len(rows)), strict=True):
            writer.write(row, vectors, extractor.backbone.boxes(image.image_id))


def pick_device(name: str) -> torch.device:
    """The device called `name`; "auto" is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device: unknown '{name}'; use auto, cpu or cuda") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device: cannot use '{name}'; use auto, cpu or cuda")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device: '{name}' is not there; use auto or cpu")
    return device


class Extractor:
    """Runs a backbone over images, decoding the next ones meanwhile."""

    def __init__(self, backbone: Backbone, device: torch.device, batch_size: int) -> None:
        self.backbone = backbone
        self.device = device
        self.batch_size = batch_size
        self.crops_at_once = _CROPS_ON_CPU if device.type == "cpu" else batch_size
        network = backbone.network
        self._network = None if network is None else channels_last(network.to(device))

    def run(self, images: Iterable[ImageFile]) -> Iterator[tuple[ImageFile, NDArray[Any]]]:
        """Each image with its (k, F) features, float32 or (of pixels) uint8, in the given order."""
        for batch in _batches(self._load(images), self.batch_size):
            crops = [pixels for _, pixels in batch]
            cells = self._forward(np.concatenate(crops))
            ends = np.cumsum([len(pixels) for pixels in crops])
            for (image, _), vectors in zip(batch, np.split(cells, ends[:-1]), strict=True):
                yield image, vectors.reshape(-1, self.backbone.width)

    def _load(self, images: Iterable[ImageFile]) -> Iterator[tuple[ImageFile, NDArray[np.uint8]]]:
        """Images with their crops (c, S, S, 3), up to two batches decoded ahead."""
        waiting: deque[tuple[ImageFile, Future[NDArray[np.uint8]]]] = deque()
        with ThreadPoolExecutor(_LOADERS) as loaders:
            try:
                for image in images:
                    waiting.append((image, loaders.submit(self._read, image)))
                    if len(waiting) > 2 * self.batch_size:
                        first, pixels = waiting.popleft()
                        yield first, pixels.result()
                while waiting:
                    first, pixels = waiting.popleft()
                    yield first, pixels.result()
            finally:
                loaders.shutdown(cancel_futures=True)

    def _read(self, image: ImageFile) -> NDArray[np.uint8]:
        return read_crops(image.path, self.backbone.crops(image.image_id), self.backbone.size)

    def _forward(self, pixels: NDArray[np.uint8]) -> NDArray[Any]:
        """(c, S, S, 3) -> (c, cells, F), always `crops_at_once` crops through the network."""
        if self._network is None:
            return pixels
        count = self.crops_at_once
        parts = [pixels[start : start + count] for start in range(0, len(pixels), count)]
        # The layers are small: splitting each over the cores costs more than it brings.
        run = side_by_side if self.device.type == "cpu" else map
        return np.concatenate(list(run(self._forward_part, parts)))

    def _forward_part(self, part: NDArray[np.uint8]) -> NDArray[np.float32]:
        missing = self.crops_at_once - len(part)
        full = np.pad(part, ((0, missing), (0, 0), (0, 0), (0, 0))) if missing else part
        return self._forward_full(full)[: len(part)]

    def _forward_full(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        assert self._network is not None
        # bfloat16 on the CPU is 2.5 times as fast, but 5% off: it stays float32 there.
        half = torch.autocast(self.device.type, torch.float16, enabled=self.device.type == "cuda")
        with torch.inference_mode(), half:
            # (c, S, S, 3) seen as (c, 3, S, S) is the channels-last layout already.
            seen = torch.from_numpy(pixels).to(self.device).permute(0, 3, 1, 2)
            cells: NDArray[np.float32] = self._network(seen).float().cpu().numpy()
        return cells


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _writer(name: str, images: list[ImageFile], extractor: Extractor, store: Path) -> FeatureWriter:
    backbone = extractor.backbone
    attributes = {
        "backbone": name,
        "weights_sha256": backbone.weights_sha256,
        "preprocessing": backbone.preprocessing,
    }
    return FeatureWriter(
        store,
        [image.image_id for image in images],
        max_regions=backbone.max_regions,
        width=backbone.width,
        dtype=backbone.dtype,
        boxes=backbone.boxes(images[0].image_id) is not None,
        attributes=attributes,
        fingerprint=_fingerprint(attributes, images, extractor),
    )


def _fingerprint(attributes: dict[str, str], images: list[ImageFile], extractor: Extractor) -> str:
    """SHA-256 of all that the features depend on; of an image file, its size and time of change."""
    digest = hashlib.sha256(json.dumps(attributes, sort_keys=True).encode())
    digest.update(f"{extractor.device.type} {extractor.crops_at_once} {torch.__version__}".encode())
    for image in images:
        state = image.path.stat()
        entry = [image.image_id, str(image.path), state.st_size, state.st_mtime_ns]
        digest.update(json.dumps(entry).encode())
        boxes = extractor.backbone.boxes(image.image_id)
        digest.update(b"" if boxes is None else boxes.tobytes())
    return digest.hexdigest()
