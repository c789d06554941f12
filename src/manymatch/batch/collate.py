"""From samples to one `Batch`: padding, masks, and all scene graphs in one."""

import itertools
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from manymatch.batch.batch import Batch, Concepts, Edges, Graphs
from manymatch.batch.numbering import NumberedCaption, NumberedGraph, Phrase
from manymatch.batch.padding import PaddedRows, padded_rows, padded_sequences, sequences
from manymatch.batch.scene_graph import MAX_ATTRIBUTES


@dataclass(frozen=True)
class ImageItem:
    """One image of a batch with its captions: `features (n, F)`; `real (n,)`, False for the rows
    that are dropped; `boxes (n, 4)` or None."""

    image_id: str
    features: np.ndarray
    real: np.ndarray
    boxes: np.ndarray | None
    captions: Sequence[NumberedCaption]


def whole_item(
    image_id: str,
    features: np.ndarray,
    boxes: np.ndarray | None = None,
    captions: Sequence[NumberedCaption] = (),
) -> ImageItem:
    """An image of whose features no row is dropped."""
    return ImageItem(image_id, features, np.ones(len(features), np.bool_), boxes, captions)


def collate_captions(captions: Sequence[NumberedCaption]) -> Batch:
    """A batch of captions whose image is blank, for networks that read only the captions."""
    return collate([whole_item("", np.zeros((1, 1), np.float16), captions=captions)])


def collate(items: Sequence[ImageItem]) -> Batch:
    """A batch of the images and all their captions (an image may have none), in the given order."""
    captions = [caption for item in items for caption in item.captions]
    words, lengths = pad_words([caption.words for caption in captions])
    boxes = [item.boxes for item in items if item.boxes is not None]
    region_mask = pad_rows([item.real for item in items])
    graphs = [caption.graph for caption in captions]
    return Batch(
        image_ids=[item.image_id for item in items],
        caption_ids=[caption.id for caption in captions],
        image_index=torch.repeat_interleave(torch.tensor([len(item.captions) for item in items])),
        features=_real_rows([item.features for item in items], region_mask),
        region_padding=padded_rows(region_mask),
        words=words,
        word_padding=padded_sequences(lengths, words.shape[1]),
        boxes=pad_rows(boxes) if boxes else None,
        graphs=collate_graphs(graphs) if any(graph.objects for graph in graphs) else None,
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

    In a worker process on Linux the memory is a file that the training process shares. To write the
    file takes half the time of writing to the same memory, whose pages are zeroed and mapped one by
    one.
    """
    shape, kind = (*mask.shape, features[0].shape[1]), getattr(torch, features[0].dtype.name)
    rows = (
        array if real.all() else np.where(real[: len(array), None], array, array.dtype.type(0))
        for array, real in zip(features, mask.numpy(), strict=True)
    )
    image_bytes = math.prod(shape[1:]) * kind.itemsize
    if sys.platform != "linux" or get_worker_info() is None or not image_bytes:
        return pad_rows(list(rows))
    with os.fdopen(os.memfd_create("features"), "wb") as file:
        for number, array in enumerate(rows):
            file.seek(number * image_bytes)
            file.write(array.data)
        size = file.truncate(len(features) * image_bytes)
        storage = torch.UntypedStorage._new_shared_fd_cpu(file.fileno(), size)  # type: ignore[attr-defined]
    return torch.empty(0, dtype=kind).set_(storage).view(shape)


def pad_words(sequences: Sequence[Phrase]) -> tuple[Tensor, Tensor]:
    """Word ids (m, L), zero where padded, and lengths (m,)."""
    lengths = np.array([len(words) for words in sequences], dtype=np.int64)
    mask = np.arange(lengths.max(initial=1)) < lengths[:, None]
    padded = np.zeros(mask.shape, dtype=np.int64)
    padded[mask] = np.fromiter(itertools.chain.from_iterable(sequences), dtype=np.int64)
    return torch.from_numpy(padded), torch.from_numpy(lengths)


class _Phrases(dict[Phrase, int]):
    """Gives every new phrase the next row."""

    def __missing__(self, phrase: Phrase) -> int:
        self[phrase] = row = len(self)
        return row


def collate_graphs(graphs: Sequence[NumberedGraph]) -> Graphs:
    """The graphs of all captions in one. Every phrase of the batch is stored once."""
    counts = _numbers([len(graph.objects) for graph in graphs])
    first = (counts.cumsum(0) - counts).tolist()  # row of each caption's first object
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
    object_caption = torch.repeat_interleave(counts)
    owner = torch.cat([attribute_object, relation_subject])
    node_caption = torch.cat([object_caption, object_caption[owner]])
    return Graphs(
        phrases=phrases,
        phrase_words=sequences(lengths, phrases.shape[1]),
        objects=_numbers(objects),
        object_names=_numbers([name for graph in graphs for name in graph.names]),
        object_attributes=_table(attribute_names, attribute_object, len(objects)),
        object_caption=object_caption,
        caption_objects=_count_padding(counts),
        caption_order=node_caption.argsort(stable=True),
        caption_nodes=_count_padding(torch.bincount(node_caption, minlength=len(counts))),
        attributes=attribute_rows,
        relations=relation_rows,
        relation_subject=relation_subject,
        relation_object=relation_object,
        edges=_edges(object_caption, attribute_object, relation_subject, relation_object),
        undropped=_undropped(graphs),
    )


def _undropped(graphs: Sequence[NumberedGraph]) -> Concepts | None:
    """The objects of the graphs before any were dropped; None if none could be."""
    whole = [graph.undropped for graph in graphs if graph.undropped is not None]
    if not whole:
        return None
    counts = _numbers([len(graph.objects) for graph in whole])
    first = (counts.cumsum(0) - counts).tolist()
    attributes = [
        (start + described, name)
        for start, graph in zip(first, whole, strict=True)
        for described, _, name in graph.attributes
    ]
    owner, names = _numbers(attributes).reshape(-1, 2).unbind(1)
    return Concepts(
        caption=torch.repeat_interleave(counts),
        names=_numbers([name for graph in whole for name in graph.names]),
        attributes=_table(names, owner, int(counts.sum())),
    )


def _count_padding(counts: Tensor) -> PaddedRows:
    """Padding that places `counts[j]` rows side by side for caption j; `counts (m,)`."""
    return padded_rows(torch.arange(int(counts.max())) < counts[:, None])


def _table(names: Tensor, owner: Tensor, count: int) -> Tensor:
    """`(count, MAX_ATTRIBUTES)`: the `names (A,)` of each owner's attributes side by side, 0 where
    there are no more; `owner (A,)` ascends."""
    sizes = torch.bincount(owner, minlength=count)
    position = torch.arange(len(owner)) - (sizes.cumsum(0) - sizes)[owner]
    return names.new_zeros(count, MAX_ATTRIBUTES).index_put((owner, position), names)


def _edges(caption: Tensor, owner: Tensor, subject: Tensor, object_: Tensor) -> Edges:
    """The edges of captions whose objects are in the captions `caption (V,)`, whose attributes
    belong to the objects `owner (A,)`, and whose relations lead from `subject (E,)` to `object_
    (E,)`."""
    count = len(caption)
    objects, attributes = segment_pairs(caption, caption[owner], count)
    all_objects = segment_pairs(caption, caption, count)
    return Edges(
        binding=_both_ways(owner, count + torch.arange(len(owner))),
        related=_drop_loops(_distinct(_both_ways(subject, object_), count)),
        subject_to_object=_drop_loops(_distinct(torch.stack([subject, object_]), count)),
        all_binding=_both_ways(objects, count + attributes),
        all_objects=_drop_loops(all_objects),
    )


def segment_pairs(first: Tensor, second: Tensor, count: int) -> Tensor:
    """`(2, E)` pairs of row numbers: each row of `first` with each row of `second` that belongs to
    the same segment. `first (V,)` and `second (W,)` are the segments of the rows, ascending, at
    most `count` of them."""
    sizes = torch.bincount(second, minlength=count)
    starts, repeats = sizes.cumsum(0) - sizes, sizes[first]
    rows = torch.arange(len(first)).repeat_interleave(repeats)
    position = torch.arange(len(rows)) - (repeats.cumsum(0) - repeats)[rows]
    return torch.stack([rows, starts[first[rows]] + position])


def _both_ways(first: Tensor, second: Tensor) -> Tensor:
    """`(2, 2E)` edges from each first to its second and back."""
    return torch.stack([torch.cat([first, second]), torch.cat([second, first])])


def _distinct(edges: Tensor, count: int) -> Tensor:
    """The edges between `count` rows, each once, ascending."""
    # Numbers are sorted many times faster than pairs.
    numbers = (edges[0] * count + edges[1]).unique()
    return torch.stack([numbers // count, numbers % count])


def _drop_loops(edges: Tensor) -> Tensor:
    return edges[:, edges[0] != edges[1]]


def _columns(triples: list[tuple[int, int, int]]) -> tuple[Tensor, ...]:
    """Three int64 tensors with the first, second and third parts of the triples."""
    return _numbers(triples).reshape(-1, 3).unbind(1)


def _numbers(values: list[Any]) -> Tensor:
    """An int64 tensor; NumPy reads a list several times faster than torch."""
    return torch.from_numpy(np.array(values, dtype=np.int64))
