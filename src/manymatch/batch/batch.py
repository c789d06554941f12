"""The batch: the output of the shards and the input of the networks, independent of both."""

import hashlib
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from manymatch.batch.padding import OnDevice, PaddedRows, PaddedSequences, Sequences


def name_id(text: str) -> int:
    """A number of 63 bits for a name or an attribute: equal in every process, never 0."""
    digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1 or 1


@dataclass(frozen=True)
class Edges(OnDevice):
    """The edges that graph attention follows: rows `(2, ...)` of sources and targets.

    No edge is a loop, and none is there twice. Attributes are numbered after all V objects.
    """

    binding: Tensor  # objects and their attributes, both ways
    related: Tensor  # objects and the objects that they are related to, both ways
    subject_to_object: Tensor  # related objects, in the direction of the relation
    all_binding: Tensor  # objects and all attributes of their caption, both ways
    all_objects: Tensor  # objects and all other objects of their caption, both ways


@dataclass(frozen=True)
class Concepts(OnDevice):
    """The objects of captions as names with attributes, one caption after another."""

    caption: Tensor  # (V,) int64 row of the caption, ascending
    names: Tensor  # (V,) int64: `name_id` of the lemmatised name
    attributes: Tensor  # (V, MAX_ATTRIBUTES) int64: `name_id` of its attributes, else 0


@dataclass(frozen=True)
class Graphs(OnDevice):
    """The scene graphs of all captions of a batch: their nodes and edges, one after another.

    `phrases` contains every distinct phrase (object words, attribute words, relation labels) once;
    nodes and edges refer to its row. V objects, A attributes, E relations, P phrases.
    """

    phrases: Tensor  # (P, T) int64 word ids, 0 = padding
    phrase_words: Sequences  # the words of `phrases`, each of which has >= 1
    objects: Tensor  # (V,) int64 row of `phrases`
    object_names: Tensor  # (V,) int64: `name_id` of the lemmatised name
    object_attributes: Tensor  # (V, MAX_ATTRIBUTES) int64: `name_id` of its attributes, else 0
    object_caption: Tensor  # (V,) int64 row of the caption, ascending; every caption has >= 1
    caption_objects: PaddedRows  # (m, K): the objects of each caption side by side
    caption_order: Tensor  # (V + A + E,) int64 rows of objects, attributes, relations by caption
    caption_nodes: PaddedRows  # (m, N): the rows of `caption_order` of each caption side by side
    attributes: Tensor  # (A,) int64 row of `phrases`
    relations: Tensor  # (E,) int64 row of `phrases`
    relation_subject: Tensor  # (E,) int64 row of the object
    relation_object: Tensor  # (E,) int64 row of the object
    edges: Edges
    undropped: Concepts | None = None  # of the graphs before any objects or attributes were dropped


@dataclass(frozen=True)
class Batch(OnDevice):
    """n images and their m captions; `image_index[j]` is the row of caption j's image."""

    image_ids: list[str]
    caption_ids: list[str]
    image_index: Tensor  # (m,) int64, ascending
    features: Tensor  # (n, R, F) float16, float32 after `to`; pixels are (n, S * S, 3) uint8
    region_padding: PaddedRows  # of `features`: real are regions or grid cells
    words: Tensor  # (m, L) int64 word ids, 0 = padding
    word_padding: PaddedSequences  # of `words`
    boxes: Tensor | None = None  # (n, R, 4) float32, x1 y1 x2 y2 in 0..1, where the store has them
    graphs: Graphs | None = None
    image_rows: Tensor | None = None  # (n,) int64 rows in `training.true_pairs.TruePairs`
    caption_rows: Tensor | None = None  # (m,) int64, the same of captions
    left_out: Tensor | None = None  # (n, m) bool: pairs of other images that are no negatives

    @property
    def region_mask(self) -> Tensor:
        """`(n, R)` bool, True = a real region or grid cell."""
        return self.region_padding.mask

    @property
    def word_mask(self) -> Tensor:
        """`(m, L)` bool, True = a real word."""
        return self.word_padding.mask

    def to(self, device: torch.device | str, non_blocking: bool = True) -> "Batch":
        """The batch on `device`. Features become float32 there: until then they are float16, half
        the bytes to prepare and to copy."""
        moved: Batch = super().to(device, non_blocking)
        if moved.features.dtype == torch.uint8:
            return moved
        return replace(moved, features=moved.features.float())
