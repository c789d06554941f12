"""From samples to one `Batch`: padding, masks, and all scene graphs in one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from manymatch.shards.batch import Batch, Graphs
from manymatch.shards.numbering import NumberedCaption, NumberedGraph, Phrase


@dataclass(frozen=True)
class Item:
    """One image of a batch with its captions.

    `features (n, F)`; `real (n,)` is False for the rows that are dropped; `boxes (n, 4)` or None.
    """

    image_id: str
    features: np.ndarray
    real: np.ndarray
    boxes: np.ndarray | None
    captions: Sequence[NumberedCaption]


def collate(items: Sequence[Item]) -> Batch:
    """A batch of the images and all their captions (an image may have none), in the given order."""
    captions = [caption for item in items for caption in item.captions]
    words, lengths = pad_words([caption.words for caption in captions])
    boxes = [item.boxes for item in items if item.boxes is not None]
    region_mask = pad_rows([item.real for item in items])
    return Batch(
        image_ids=[item.image_id for item in items],
        caption_ids=[caption.id for caption in captions],
        image_index=torch.repeat_interleave(torch.tensor([len(item.captions) for item in items])),
        features=_real_rows([item.features for item in items], region_mask),
        region_mask=region_mask,
        words=words,
        word_mask=torch.arange(words.shape[1]) < lengths[:, None],
        boxes=pad_rows(boxes) if boxes else None,
        graphs=collate_graphs([caption.graph for caption in captions]) if captions else None,
    )


def pad_rows(arrays: Sequence[np.ndarray]) -> Tensor:
    """Arrays (n_i, ...) as (n, R, ...), zero (or False) where padded."""
    longest = max(len(array) for array in arrays)
    padded = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    return torch.from_numpy(padded)


def _real_rows(features: Sequence[np.ndarray], mask: Tensor) -> Tensor:
    """Features (n_i, F) as (n, R, F), zero where `mask (n, R)` is False.

    In a worker process the memory is shared with the training process, which saves a copy.
    """
    shape, kind = (*mask.shape, features[0].shape[1]), getattr(torch, features[0].dtype.name)
    if get_worker_info() is None:
        batch = torch.empty(shape, dtype=kind)
    else:
        storage = torch.UntypedStorage._new_shared(math.prod(shape) * kind.itemsize)
        batch = torch.empty(0, dtype=kind).set_(storage).view(shape)
    for row, array in zip(batch.numpy(), features, strict=True):
        row[: len(array)] = array
    batch.numpy()[~mask.numpy()] = 0
    return batch


def pad_words(sequences: Sequence[Phrase]) -> tuple[Tensor, Tensor]:
    """Word ids (m, L), zero where padded, and lengths (m,)."""
    lengths = np.array([len(words) for words in sequences], dtype=np.int64)
    mask = np.arange(lengths.max(initial=1)) < lengths[:, None]
    padded = np.zeros(mask.shape, dtype=np.int64)
    padded[mask] = np.fromiter((word for words in sequences for word in words), dtype=np.int64)
    return torch.from_numpy(padded), torch.from_numpy(lengths)


class _Phrases(dict[Phrase, int]):
    """Gives every new phrase the next row."""

    def __missing__(self, phrase: Phrase) -> int:
        self[phrase] = row = len(self)
        return row


def collate_graphs(graphs: Sequence[NumberedGraph]) -> Graphs:
    """The graphs of all captions in one. Every phrase of the batch is stored once."""
    counts = [len(graph.objects) for graph in graphs]
    first = np.cumsum([0, *counts[:-1]]).tolist()  # row of each caption's first object
    rows = _Phrases()
    attributes = [
        (rows[phrase], start + described, name)
        for start, graph in zip(first, graphs, strict=True)
        for described, phrase, name in graph.attributes
    ]
    relations = [
        (rows[phrase], start + subject, start + other)
        for start, graph in zip(first, graphs, strict=True)
        for subject, phrase, other in graph.relations
    ]
    objects = [rows[phrase] for graph in graphs for phrase in graph.objects]
    phrases, lengths = pad_words(list(rows))
    attribute_rows, attribute_object, attribute_names = _columns(attributes)
    relation_rows, relation_subject, relation_object = _columns(relations)
    return Graphs(
        phrases=phrases,
        phrase_lengths=lengths,
        objects=torch.tensor(objects),
        object_names=torch.tensor([name for graph in graphs for name in graph.names]),
        object_caption=torch.repeat_interleave(torch.tensor(counts)),
        attributes=attribute_rows,
        attribute_object=attribute_object,
        attribute_names=attribute_names,
        relations=relation_rows,
        relation_subject=relation_subject,
        relation_object=relation_object,
    )


def _columns(triples: Iterable[tuple[int, int, int]]) -> tuple[Tensor, ...]:
    """Three int64 tensors with the first, second and third parts of the triples."""
    return torch.tensor(list(triples), dtype=torch.int64).reshape(-1, 3).unbind(1)
