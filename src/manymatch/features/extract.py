"""The stage `features`: images -> feature store. A run can be resumed at any image."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from manymatch.config.params import Extraction
from manymatch.features import build_backbone, entry_points
from manymatch.features.backbone import Backbone, Detector, Sources
from manymatch.features.extractors import Detection, Extracted, Extractor, stored
from manymatch.features.image_list import ImageFile, list_images
from manymatch.features.layout import Layout
from manymatch.features.writer import FeatureWriter
from manymatch.networks.device import pick_device
from manymatch.util.code_hash import code_hash
from manymatch.util.files import sha256
from manymatch.util.parts import Part, Parts, identity_of
from manymatch.util.progress import track


def extract(
    backbone: str,
    raw: Path,
    captions: Path,
    store: Path,
    settings: Extraction,
    *,
    parts: Parts,
) -> None:
    """Write the features of all images of the caption table to `store`, or one of its `parts`.

    A run that was killed continues where it stopped. The finished file is the same, byte for byte,
    with and without interruptions and parts.

    Args:
        backbone: the name of the features; also the kind, unless `settings` names another one.
        raw: the data set's raw folder, which contains the files of the caption table.
        settings: of the features. The batch size is that of crops; most kinds of features have one
            crop an image.
        parts: the part to write, if not everything is to be written.

    Raises:
        ConfigError: the backbone, the device or the weights do not exist.
        DataError: an image is missing, damaged, too large or outside `raw`.
        StorageError: the disk is full.
    """
    images = list_images(captions, raw, backbone)
    kind, on = settings.kind or backbone, pick_device(settings.device)
    built = build_backbone(kind, Sources(raw, settings))
    extractor: Extractor | Detection
    if isinstance(built, Detector):
        extractor = Detection(kind, built, on)
    else:
        extractor = Extractor(kind, built, on, settings.batch_size)

    def content(image: ImageFile) -> list[Any]:
        return [image.image_id, sha256(image.source)]

    def identity(part: Part) -> str:
        """SHA-256 of everything that the features depend on; the same on every machine."""
        code = code_hash(__name__, *entry_points(backbone, settings))
        return identity_of(code, _fingerprint(extractor, part.of(images), content))

    if parts.wanted:
        selected = parts.wanted.of(images)
        parts.wanted.refuse_empty(selected, "images")
        with parts.making(identity) as path:
            if path:
                _fill(path, selected, extractor, extractor.run)
        return
    with parts.joining(identity) as joined:
        _fill(store, images, extractor, partial(stored, joined) if joined else extractor.run)


def _fill(
    store: Path,
    images: Sequence[ImageFile],
    extractor: Extractor | Detection,
    run: Callable[[Iterable[ImageFile]], Iterator[Extracted]],
) -> None:
    """Write to `store` what `run` gives for the images that the store does not have yet."""
    backbone = extractor.backbone
    given = extractor.given_boxes(images[0].image_id)
    content = Layout(
        [image.image_id for image in images],
        backbone.max_regions,
        backbone.width,
        backbone.dtype,
        backbone.finds_boxes or given is not None,
        _attributes(extractor),
    )
    with FeatureWriter(store, content, _fingerprint(extractor, images, _state)) as writer:
        rows = writer.rows_left()
        features = run(images[row] for row in rows)
        name = f"features {extractor.name} on {extractor.device.type} (images)"
        for row, (_, vectors, boxes) in zip(rows, track(features, name, len(rows)), strict=True):
            writer.write(row, vectors, boxes)


def _attributes(extractor: Extractor | Detection) -> dict[str, str]:
    backbone = extractor.backbone
    return {
        "backbone": extractor.name,
        "weights_sha256": backbone.weights_sha256,
        "preprocessing": backbone.preprocessing,
        **(backbone.facts if isinstance(backbone, Backbone) else {}),
    }


def _state(image: ImageFile) -> list[Any]:
    """Path, size and time of change of an image: quick to read, but valid on this machine only."""
    state = image.source.stat()
    return [image.image_id, str(image.source), state.st_size, state.st_mtime_ns]


def _fingerprint(
    extractor: Extractor | Detection,
    images: Sequence[ImageFile],
    describe: Callable[[ImageFile], list[Any]],
) -> str:
    """SHA-256 of everything that the features depend on; `describe` gives the facts of an image."""
    digest = hashlib.sha256(json.dumps(_attributes(extractor), sort_keys=True).encode())
    digest.update(f"{extractor.state} {torch.__version__}".encode())
    for image in images:
        digest.update(json.dumps(describe(image)).encode())
        boxes = extractor.given_boxes(image.image_id)
        digest.update(b"" if boxes is None else boxes.tobytes())
    return digest.hexdigest()
