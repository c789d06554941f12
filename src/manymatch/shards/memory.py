"""The images of a split in memory: read and decoded once instead of in every epoch."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from manymatch.batch.batch import Batch
from manymatch.shards.fetch import RawSample, fetch
from manymatch.shards.index import read_index
from manymatch.shards.order import shard_order
from manymatch.shards.sample import BOXES, FEATURES, JSON, decode, npy_bytes
from manymatch.util.progress import track

_BLOCK = 512
"""The images that are copied to a GPU at once. The host waits for each copy."""


class FeatureMemory:
    """The features of all images of a split in one tensor, as the shards store them.

    Batches are made of `samples`, whose features have the width 0, so that worker processes handle
    text alone. `fill` puts the features in.

    Args:
        device: where the features are.
        pinned: whether features on the host are given to a GPU.
        tensor: makes the tensor of a shape and type, and says whether this process is to fill the
            tensor; None: a tensor of this process alone.

    Raises:
        DataError: a shard is missing or damaged.
    """

    def __init__(
        self,
        folder: Path,
        split: str,
        device: torch.device | str = "cpu",
        pinned: bool = False,
        tensor: Callable[[Sequence[int], torch.dtype], tuple[Tensor, bool]] | None = None,
    ) -> None:
        index = read_index(folder)
        shards, where = index.split(split), f"{folder} ({split})"
        shape = shards.images, index.max_regions, index.width
        kind, fills = getattr(torch, index.dtype), True
        if tensor is None:
            self._features = torch.zeros(shape, dtype=kind, device=device)
        else:
            self._features, fills = tensor(shape, kind)
        self._pinned = pinned
        self._rows: dict[str, int] = {}
        self.samples: list[RawSample] = []
        """The samples in table order."""
        order = shard_order(len(shards.shards), None)
        stored = fetch(folder, shards, order, range(shards.images), {JSON, FEATURES, BOXES})
        block = torch.zeros_like(self._features[:_BLOCK], device="cpu")
        for row, raw in track(stored, f"features of {where}", shards.images, quiet=True):
            sample = decode(raw, index.width, where, index.dtype, draw=lambda _: ())
            place, real = row % _BLOCK, len(sample.features)
            block[place, :real], block[place, real:] = torch.tensor(sample.features), 0
            if fills and (place == _BLOCK - 1 or row == shards.images - 1):
                self._features[row - place : row + 1] = block[: place + 1]
            self._rows[sample.image_id] = row
            self.samples.append({**raw, FEATURES: npy_bytes(sample.features[:, :0])})

    def fill(self, batch: Batch) -> Batch:
        """The `batch`, on the CPU, with its features, zero where `region_mask` is False.

        On a GPU the features belong to the stream that is current.
        """
        rows = torch.tensor([self._rows[image_id] for image_id in batch.image_ids])
        stored = self._features[:, : batch.region_mask.shape[1]]
        device = stored.device
        features = torch.empty(
            (len(rows), *stored.shape[1:]),
            dtype=stored.dtype,
            device=device,
            pin_memory=self._pinned and device.type == "cpu",
        )
        torch.index_select(stored, 0, rows.to(device, non_blocking=True), out=features)
        if not batch.region_padding.all_real:
            # By number: a mask of all features would take twice as long as their copy.
            unreal = (~batch.region_mask).flatten().nonzero()[:, 0]
            features.flatten(0, 1).index_fill_(0, unreal.to(device, non_blocking=True), 0)
        return replace(batch, features=features)
