"""A batch says the same as its samples, one at a time."""

from dataclasses import replace

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from manymatch.batch.collate import collate, collate_graphs, whole_item
from manymatch.batch.numbering import NumberedCaption, NumberedGraph

LONE = NumberedGraph(objects=[(9, 8)], names=[77], attributes=[], relations=[])
PAIR = NumberedGraph(
    objects=[(5,), (9, 8)],
    names=[55, 77],
    attributes=[(0, (6,), 66), (1, (6,), 66)],
    relations=[(1, (4, 3, 2), 0)],
)


def item(name, regions, graphs, boxes=False):
    features = np.full((regions, 3), regions, dtype=np.float16)
    captions = [
        NumberedCaption(f"{name}#{n}", tuple(range(1, n + 2)), graph)
        for n, graph in enumerate(graphs)
    ]
    places = np.ones((regions, 4), dtype=np.float32) if boxes else None
    return whole_item(name, features, places, captions)


def test_regions_and_words_are_padded_and_masked():
    batch = collate([item("a", 2, [PAIR]), item("b", 4, [LONE, PAIR, LONE], boxes=False)])
    assert batch.features.shape == (2, 4, 3)
    assert batch.features.dtype == torch.float16  # half the bytes until the device has them
    batch = batch.to("cpu")
    assert batch.features.dtype == torch.float32
    assert batch.region_mask.tolist() == [[True, True, False, False], [True] * 4]
    assert torch.equal(batch.features[0], torch.tensor([[2.0], [2.0], [0.0], [0.0]]).expand(4, 3))
    assert batch.words.tolist() == [[1, 0, 0], [1, 0, 0], [1, 2, 0], [1, 2, 3]]
    assert torch.equal(batch.word_mask, batch.words > 0)
    assert batch.image_index.tolist() == [0, 1, 1, 1]
    assert batch.image_ids == ["a", "b"]
    assert batch.caption_ids == ["a#0", "b#0", "b#1", "b#2"]
    assert batch.boxes is None


def test_dropped_regions_and_boxes_of_none_are_zero():
    dropped = replace(item("a", 3, [LONE]), real=np.array([True, False, True]))
    batch = collate([dropped])
    assert batch.features[0, :, 0].tolist() == [3.0, 0.0, 3.0]
    assert batch.region_mask.tolist() == [[True, False, True]]
    batch = collate([item("a", 1, [LONE], boxes=True), item("b", 2, [LONE], boxes=True)])
    assert batch.boxes.shape == (2, 2, 4) and batch.boxes[0, 1].tolist() == [0.0] * 4


class Copies(TorchDispatchMode):
    """Counts the copies to another device."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.aten._to_copy.default and "device" in (kwargs or {})
        return func(*args, **(kwargs or {}))


def test_a_packed_batch_moves_in_one_copy():
    batch = collate([item("a", 1, [LONE, PAIR], boxes=True), item("b", 2, [PAIR], boxes=True)])
    packed = batch.packed()
    for value, same in zip(batch.tensors(), packed.tensors(), strict=True):
        assert torch.equal(value, same) and value.dtype == same.dtype
    with Copies() as copies:
        moved = packed.to("meta")
    assert copies.count == 1 < len(list(batch.tensors()))
    assert [part.shape for part in moved.tensors()] == [part.shape for part in batch.tensors()]
    for value, same in zip(batch.to("cpu").tensors(), packed.to("cpu").tensors(), strict=True):
        assert torch.equal(value, same)


def test_phrases_are_held_once_and_rows_point_right():
    graphs = collate_graphs([LONE, PAIR, PAIR])
    rows = [tuple(row[row > 0].tolist()) for row in graphs.phrases]
    assert len(rows) == len(set(rows)) == 4
    assert graphs.phrase_words.mask.sum(1).tolist() == [len(row) for row in rows]
    assert [rows[n] for n in graphs.objects] == [(9, 8), (5,), (9, 8), (5,), (9, 8)]
    assert graphs.object_names.tolist() == [77, 55, 77, 55, 77]
    assert graphs.object_caption.tolist() == [0, 1, 1, 2, 2]
    assert [rows[n] for n in graphs.attributes] == [(6,)] * 4
    assert graphs.object_attributes.tolist() == [[0] * 4, *[[66, 0, 0, 0]] * 4]
    assert graphs.edges.binding.tolist() == [[1, 2, 3, 4, 5, 6, 7, 8], [5, 6, 7, 8, 1, 2, 3, 4]]
    assert [rows[n] for n in graphs.relations] == [(4, 3, 2)] * 2
    assert graphs.relation_subject.tolist() == [2, 4]
    assert graphs.relation_object.tolist() == [1, 3]


def test_objects_before_drops_are_told_by_caption():
    assert collate_graphs([LONE, PAIR]).undropped is None
    said = collate_graphs([LONE._replace(undropped=PAIR), PAIR._replace(undropped=PAIR)]).undropped
    assert said.caption.tolist() == [0, 0, 1, 1] and said.names.tolist() == [55, 77] * 2
    assert said.attributes.tolist() == collate_graphs([PAIR, PAIR]).object_attributes.tolist()


def test_edges_of_graph_attention_are_there_once_and_lead_elsewhere():
    relations = [(1, (4,), 0), (1, (3,), 0), (0, (4,), 1), (1, (2,), 1), (1, (4,), 2)]
    graph = NumberedGraph([(5,), (6,), (7,)], [55, 66, 77], [(2, (8,), 88)], relations)
    edges = collate_graphs([LONE, graph]).edges
    assert edges.subject_to_object.T.tolist() == [[1, 2], [2, 1], [2, 3]]
    assert edges.related.T.tolist() == [[1, 2], [2, 1], [2, 3], [3, 2]]
    assert edges.all_objects.T.tolist() == [[1, 2], [1, 3], [2, 1], [2, 3], [3, 1], [3, 2]]
    assert edges.binding.T.tolist() == [[3, 4], [4, 3]]
    assert edges.all_binding.T.tolist() == [[1, 4], [2, 4], [3, 4], [4, 1], [4, 2], [4, 3]]
