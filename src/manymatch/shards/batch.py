"""The batch: the output of the shards and the input of the networks, independent of both."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor


def name_id(text: str) -> int:
    """A number of 63 bits for a name or an attribute: equal in every process, never 0."""
    digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1 or 1


class _OnDevice:
    """Moves all tensors, also those of nested batches, to a device or to pinned memory."""

    def to(self, device: torch.device | str, non_blocking: bool = True) -> Any:
        return self._map(lambda part: part.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Any:
        return self._map(lambda part: part.pin_memory())

    def _map(self, move: Callable[[Any], Any]) -> Any:
        moved = {
            field.name: move(value)
            for field in fields(self)  # type: ignore[arg-type]
            if isinstance(value := getattr(self, field.name), Tensor | _OnDevice)
        }
        return replace(self, **moved)  # type: ignore[type-var]


@dataclass(frozen=True)
class Graphs(_OnDevice):
    """The scene graphs of all captions of a batch: their nodes and edges, one after another.

    `phrases` contains every distinct phrase (object words, attribute words, relation labels) once;
    nodes and edges refer to its row. V objects, A attributes, E relations, P phrases.
    """

    phrases: Tensor  # (P, T) int64 word ids, 0 = padding
    phrase_lengths: Tensor  # (P,) int64, >= 1
    objects: Tensor  # (V,) int64 row of `phrases`
    object_names: Tensor  # (V,) int64: `name_id` of the lemmatised name
    object_caption: Tensor  # (V,) int64 row of the caption, ascending; every caption has >= 1
    attributes: Tensor  # (A,) int64 row of `phrases`
    attribute_object: Tensor  # (A,) int64 row of the object that it belongs to, ascending
    attribute_names: Tensor  # (A,) int64: `name_id` of the attribute phrase
    relations: Tensor  # (E,) int64 row of `phrases`
    relation_subject: Tensor  # (E,) int64 row of the object
    relation_object: Tensor  # (E,) int64 row of the object


@dataclass(frozen=True)
class Batch(_OnDevice):
    """n images and their m captions; `image_index[j]` is the row of caption j's image."""

    image_ids: list[str]
    caption_ids: list[str]
    image_index: Tensor  # (m,) int64, ascending
    features: Tensor  # (n, R, F) float16, float32 after `to`; pixels are (n, S * S, 3) uint8
    region_mask: Tensor  # (n, R) bool, True = a real region or grid cell
    words: Tensor  # (m, L) int64 word ids, 0 = padding
    word_mask: Tensor  # (m, L) bool, True = a real word
    boxes: Tensor | None = None  # (n, R, 4) float32, x1 y1 x2 y2 in 0..1, where the store has them
    graphs: Graphs | None = None

    def to(self, device: torch.device | str, non_blocking: bool = True) -> Batch:
        """The batch on `device`. Features become float32 there: until then they are float16, half
        the bytes to prepare and to copy."""
        moved: Batch = super().to(device, non_blocking)
        if moved.features.dtype == torch.uint8:
            return moved
        return replace(moved, features=moved.features.float())
