"""The stage `features`: images -> feature store, resumable image by image.

What an image's features are must not depend on where a run was interrupted. So the network
always sees the same number of crops at once, the last batch filled up with black: then every
crop goes through the same kernels, and its result does not depend on its neighbours.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manymatch.features import build_backbone, entry_point
from manymatch.features.backbone import Backbone, channels_last
from manymatch.features.detector import Detector, DetectorSources
from manymatch.features.joining import Extracted, stored
from manymatch.features.store import FeatureWriter
from manymatch.foreign.images import ImageFile, list_images, read_crops, read_image
from manymatch.system.code_hash import code_hash
from manymatch.system.device import pick_device
from manymatch.system.files import sha256
from manymatch.system.parallel_map import side_by_side
from manymatch.system.parts import Part, Parts, identity_of
from manymatch.system.progress import say, track

Item = TypeVar("Item")
_LOADERS = 4
"""Threads that decode; Pillow lets go of the interpreter while it does."""
_PREPARERS = 2
"""The same for a detector: it needs longer for an image than one of them."""
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
    regions: tuple[int, int] = (36, 36),
    *,
    parts: Parts,
) -> None:
    """Write the features of all images of the table `captions` to `store`, or one of its `parts`.

    A run that is killed goes on where it was; the finished file is the same, byte for byte. So it
    is if it is joined from parts.

    Args:
        backbone: a name in `features.BACKBONES`.
        raw: the dataset's raw folder, in which the table's files lie.
        batch_size: images (on a GPU: also crops) at once.
        device: "auto" takes the GPU if there is one; or "cpu", "cuda", "cuda:1".
        weights: of the backbone, where not its default.
        regions: the fewest and the most of an image, where a detector finds them.

    Raises:
        ConfigError: unknown backbone or device, or no weights.
        DataError: an image that is missing, damaged, too great or outside `raw`.
        StorageError: the disk is full.
    """
    images = list_images(captions, raw)
    extractor = _extractor(backbone, pick_device(device), batch_size, raw, weights, regions)

    def identity(part: Part) -> str:
        return _identity(extractor, part.of(images))

    if parts.wanted:
        chosen = parts.wanted.of(images)
        parts.wanted.refuse_empty(chosen, "images")
        with parts.making(identity) as path:
            if path:
                _fill(path, chosen, extractor, extractor.run)
        return
    with parts.joining(identity) as joined:
        _fill(store, images, extractor, partial(stored, joined) if joined else extractor.run)


def _extractor(
    name: str,
    device: torch.device,
    batch_size: int,
    raw: Path,
    weights: str | None,
    regions: tuple[int, int],
) -> Extractor | Detection:
    built = build_backbone(name, DetectorSources(raw, weights, regions))
    if isinstance(built, Detector):
        return Detection(name, built, device)
    return Extractor(name, built, device, batch_size)


def _fill(
    store: Path,
    images: Sequence[ImageFile],
    extractor: Extractor | Detection,
    run: Callable[[Iterable[ImageFile]], Iterator[Extracted]],
) -> None:
    """Write to `store` what `run` gives for those of `images` that are not there yet."""
    with _writer(images, extractor, store) as writer:
        rows = np.flatnonzero(~writer.done).tolist()
        if len(rows) < len(images):
            say(f"{store}: {len(images) - len(rows)} of {len(images)} images are there already")
        features = run(images[row] for row in rows)
        name = f"features {extractor.name} ({extractor.device.type})"
        for row, (_, vectors, boxes) in zip(rows, track(features, name, len(rows)), strict=True):
            writer.write(row, vectors, boxes)


class Extractor:
    """Runs a backbone over images, decoding the next ones meanwhile."""

    def __init__(
        self, name: str, backbone: Backbone, device: torch.device, batch_size: int
    ) -> None:
        self.name = name
        self.backbone = backbone
        self.device = device
        self.batch_size = batch_size
        self.crops_at_once = _CROPS_ON_CPU if device.type == "cpu" else batch_size
        network = backbone.network
        self._network = None if network is None else channels_last(network.to(device))

    def run(self, images: Iterable[ImageFile]) -> Iterator[Extracted]:
        """Each image with its features and boxes, in the given order."""
        for batch in _batches(self._load(images), self.batch_size):
            crops = [pixels for _, pixels in batch]
            cells = self._forward(np.concatenate(crops))
            ends = np.cumsum([len(pixels) for pixels in crops])
            for (image, _), vectors in zip(batch, np.split(cells, ends[:-1]), strict=True):
                boxes = self.backbone.boxes(image.image_id)
                yield image, vectors.reshape(-1, self.backbone.width), boxes

    def given(self, image_id: str) -> NDArray[np.float32] | None:
        """What the features depend on besides the file: the boxes, where they are known before."""
        return self.backbone.boxes(image_id)

    @property
    def state(self) -> str:
        """What they depend on besides the backbone."""
        return f"{self.device.type} {self.crops_at_once}"

    def _load(self, images: Iterable[ImageFile]) -> Iterator[tuple[ImageFile, NDArray[np.uint8]]]:
        """Images with their crops (c, S, S, 3), up to two batches decoded ahead."""
        return _read_ahead(self._read, images, _LOADERS, 2 * self.batch_size)

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


class Detection:
    """Runs a detector over images one after another, preparing the next ones meanwhile."""

    def __init__(self, name: str, detector: Detector, device: torch.device) -> None:
        self.name = name
        self.backbone = detector
        self.device = device
        channels_last(detector.network.to(device))

    def run(self, images: Iterable[ImageFile]) -> Iterator[Extracted]:
        """Each image with its features and boxes, in the given order."""
        for image, pixels in _read_ahead(self._read, images, _PREPARERS, _PREPARERS):
            with torch.inference_mode():
                regions = self.backbone.detect(pixels.to(self.device))
            yield image, regions.features, regions.boxes

    def given(self, image_id: str) -> None:
        """The boxes are found, not given."""

    @property
    def state(self) -> str:
        return self.device.type

    def _read(self, image: ImageFile) -> Tensor:
        return self.backbone.prepare(read_image(image.path))


def _read_ahead(
    read: Callable[[ImageFile], Item], images: Iterable[ImageFile], threads: int, count: int
) -> Iterator[tuple[ImageFile, Item]]:
    """Images with what `read` makes of them, up to `count` of them ahead."""
    waiting: deque[tuple[ImageFile, Future[Item]]] = deque()
    with ThreadPoolExecutor(threads) as loaders:
        try:
            for image in images:
                waiting.append((image, loaders.submit(read, image)))
                if len(waiting) > count:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            loaders.shutdown(cancel_futures=True)


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _writer(
    images: Sequence[ImageFile], extractor: Extractor | Detection, store: Path
) -> FeatureWriter:
    backbone = extractor.backbone
    found = isinstance(extractor, Detection)
    return FeatureWriter(
        store,
        [image.image_id for image in images],
        max_regions=backbone.max_regions,
        width=backbone.width,
        dtype=backbone.dtype,
        boxes=found or extractor.given(images[0].image_id) is not None,
        attributes=_attributes(extractor),
        fingerprint=_fingerprint(extractor, images, _state),
    )


def _attributes(extractor: Extractor | Detection) -> dict[str, str]:
    return {
        "backbone": extractor.name,
        "weights_sha256": extractor.backbone.weights_sha256,
        "preprocessing": extractor.backbone.preprocessing,
    }


def _identity(extractor: Extractor | Detection, images: Sequence[ImageFile]) -> str:
    """SHA-256 of all that the features depend on, the same on every machine."""

    def content(image: ImageFile) -> list[Any]:
        return [image.image_id, sha256(image.path)]

    code = code_hash(__name__, entry_point(extractor.name))
    return identity_of(code, _fingerprint(extractor, images, content))


def _state(image: ImageFile) -> list[Any]:
    """Of an image file, its size and time of change: quick to read, but of this machine alone."""
    state = image.path.stat()
    return [image.image_id, str(image.path), state.st_size, state.st_mtime_ns]


def _fingerprint(
    extractor: Extractor | Detection,
    images: Sequence[ImageFile],
    describe: Callable[[ImageFile], list[Any]],
) -> str:
    """SHA-256 of all that the features depend on, of an image file what `describe` tells of it."""
    digest = hashlib.sha256(json.dumps(_attributes(extractor), sort_keys=True).encode())
    digest.update(f"{extractor.state} {torch.__version__}".encode())
    for image in images:
        digest.update(json.dumps(describe(image)).encode())
        given = extractor.given(image.image_id)
        digest.update(b"" if given is None else given.tobytes())
    return digest.hexdigest()
