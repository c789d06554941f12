"""The stage `features` for published features: copy them to a feature store.

Reading and writing run in parallel with a few rows in memory. After an interruption the next run
continues, and the finished file is the same.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manymatch.features.importers import open_published
from manymatch.features.importers.published import Published, read_image_table
from manymatch.features.writer import FeatureWriter
from manymatch.util.errors import DataError, SourceError
from manymatch.util.prefetch import ahead
from manymatch.util.progress import track


def import_features(
    name: str, format: str, path: Path, captions: Path, store: Path, max_regions: int | None = None
) -> None:
    """Write the published features of all images in the caption table `captions` to `store`.

    Args:
        name: the name of the features, for the store's attributes.
        format: a name in `importers.FORMATS`.
        path: a file or folder in this format.
        max_regions: the most regions of an image. Without it, a format that does not record this
            number (`butd_tsv`) is read twice.

    Raises:
        ConfigError: the format is unknown.
        SourceError: `path` does not exist.
        DataError: a file is damaged (the message names the line or row), or an image has no
            features.
        StorageError: the disk is full.
    """
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder. Correct the 'path' in params.yaml")
    images = read_image_table(captions)
    published = open_published(format, path, images, max_regions)
    with _writer(name, format, published, images.image_ids, store) as writer:
        left = len(writer.rows_left())
        with closing(ahead(published.rows(lambda row: not writer.done[row]))) as rows:
            for row in track(rows, f"import {format} {path}", left):
                try:
                    writer.write(row.number, halves(row.features), row.boxes)
                except DataError as error:
                    raise DataError(f"{row.where}: {error}") from None


def halves(features: NDArray[Any]) -> NDArray[np.float16]:
    """Round to float16, 40 times faster than NumPy does. Too large numbers become infinity."""
    native = np.require(features, features.dtype.newbyteorder("="), ["C", "W"])
    rounded: NDArray[np.float16] = torch.from_numpy(native).half().numpy()
    return rounded


def _writer(
    name: str, format: str, published: Published, image_ids: list[str], store: Path
) -> FeatureWriter:
    files = " ".join(file.name for file in published.files[:8])
    more = f" and {len(published.files) - 8} more" if len(published.files) > 8 else ""
    attributes = {
        "backbone": name,
        "weights_sha256": "unknown",
        "preprocessing": f"published, {format}: {files}{more}",
    }
    return FeatureWriter(
        store,
        image_ids,
        max_regions=published.max_regions,
        width=published.width,
        boxes=published.has_boxes,
        attributes=attributes,
        fingerprint=_fingerprint(attributes, published, image_ids),
    )


def _fingerprint(attributes: dict[str, str], published: Published, image_ids: list[str]) -> str:
    """SHA-256 of all that the store depends on; of files, the size and modification time."""
    shape = [published.width, published.max_regions, published.has_boxes]
    digest = hashlib.sha256(json.dumps([attributes, shape, image_ids], sort_keys=True).encode())
    for file in published.files:
        state = file.stat()
        digest.update(json.dumps([str(file), state.st_size, state.st_mtime_ns]).encode())
    return digest.hexdigest()
