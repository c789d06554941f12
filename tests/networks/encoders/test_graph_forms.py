"""CORA's graph in each of its forms against a walk through each caption by itself."""

import itertools

import pytest
import torch
from torch import nn

from manymatch.batch.collate import collate_graphs, segment_pairs
from manymatch.batch.numbering import NumberedGraph
from manymatch.networks.encoders.scene_graph import GraphSettings, SceneGraphEncoder

SIZE = 8
GRAPHS = [
    NumberedGraph(
        [(3,), (4, 5), (6,)],
        [1, 2, 3],
        [(0, (7,), 10), (0, (8,), 11), (2, (7,), 10)],
        [(0, (9,), 1), (2, (9,), 1), (0, (10,), 1), (1, (9, 10), 0)],
    ),
    NumberedGraph([(5,)], [4], [], []),
    NumberedGraph([(3,), (3,)], [1, 1], [(1, (8, 9), 12)], []),
]
FORMS = [
    {},
    {"object_edges": "subject_to_object"},
    {"fully_connected": True},
    {"graph": "joint"},
    {"graph": "joint", "fully_connected": True},
    {"graph": "sums"},
    {"graph": "phrases"},
]
forms = pytest.mark.parametrize("form", FORMS, ids=str)


class MeanOfWords(nn.Module):
    """A concept encoder simple enough to repeat by hand."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, SIZE)

    def forward(self, phrases, words):
        mask = words.mask[:, :, None]
        return (self.words(phrases) * mask).sum(1) / mask.sum(1)


def build(form):
    torch.manual_seed(0)
    settings = GraphSettings(size=SIZE, heads=2, attribute_layers=2, **form)
    return SceneGraphEncoder(settings, MeanOfWords()).double()


class Half(nn.Module):
    """Stands in for dropout, so that a test sees where dropout acts."""

    def forward(self, values):
        return values / 2


def naive(encoder, graph):
    """Entities and pooled nodes of one caption, edge by edge."""

    def concept(phrase):
        return encoder.dropout(encoder.concepts.words.weight[list(phrase)].mean(0))

    objects = [concept(phrase) for phrase in graph.objects]
    attributes = [concept(phrase) for _, phrase, _ in graph.attributes]
    count = len(objects)
    held = [(owner, row) for row, (owner, _, _) in enumerate(graph.attributes)]
    between = {(subject, other) for subject, _, other in graph.relations}
    if encoder.settings.object_edges == "both_ways":
        between |= {(other, subject) for subject, other in between}
    if encoder.settings.fully_connected:
        held = list(itertools.product(range(count), range(len(attributes))))
        between = set(itertools.permutations(range(count), 2))
    binding = [edge for i, a in held for edge in ((i, count + a), (count + a, i))]

    def attend(layers, nodes, edges):
        result = torch.stack(nodes)
        for layer in layers:
            if layer is not layers[0]:
                result = encoder.dropout(result)
            result = layer(result, torch.tensor([*edges], dtype=torch.int64).reshape(-1, 2).T)
        return list(result)

    def in_context(entities):
        result = []
        for i, entity in enumerate(entities):
            active = [
                encoder.edge_context.active(torch.cat([concept(label), entities[other]]))
                for subject, label, other in graph.relations
                if subject == i
            ]
            passive = [
                encoder.edge_context.passive(torch.cat([concept(label), entity]))
                for _, label, other in graph.relations
                if other == i
            ]
            parts = [
                torch.stack([encoder.dropout(edge) for edge in edges]).mean(0)
                for edges in (active, passive)
                if edges
            ]
            result.append(encoder.dropout(sum(parts, entity)))
        return result

    if encoder.settings.graph in ("sums", "phrases"):
        entities = list(objects)
        for owner, attribute in held:
            entities[owner] = entities[owner] + attributes[attribute]
        if encoder.settings.graph == "phrases":
            labels = [concept(label) for _, label, _ in graph.relations]
            return torch.stack(entities), torch.stack([*objects, *attributes, *labels])
        summed = list(entities)
        for subject, label, _ in graph.relations:
            summed[subject] = summed[subject] + concept(label)
        return torch.stack(entities), torch.stack(summed)
    if encoder.settings.graph == "joint":
        nodes = in_context(objects) + attributes
        result = attend(encoder.object_object, nodes, [*binding, *between])[:count]
        return torch.stack(result), torch.stack(result)
    entities = attend(encoder.object_attribute, objects + attributes, binding)[:count]
    return torch.stack(entities), torch.stack(
        attend(encoder.object_object, in_context(entities), between)
    )


@forms
def test_each_form_learns_and_drops_as_a_walk_through_the_captions_does(form):
    encoder = build({**form, "graph_dropout": 0.5})
    assert encoder.dropout.p == 0.5
    encoder.dropout = Half()
    if encoder.settings.graph not in ("sums", "phrases"):
        assert encoder.edge_context.dropout.p == 0.5
        encoder.edge_context.dropout = Half()
    entities, nodes, padding = encoder(collate_graphs(GRAPHS))
    walks = [naive(encoder, graph) for graph in GRAPHS]
    counts = torch.tensor([len(own) for _, own in walks])
    captions = torch.arange(len(GRAPHS)).repeat_interleave(counts)
    torch.testing.assert_close(padding.mask.nonzero()[:, 0], captions)
    torch.testing.assert_close(padding.rows, padding.mask.flatten().nonzero()[:, 0])
    used = list(encoder.parameters())
    for got, parts in zip((entities, nodes), zip(*walks, strict=True), strict=True):
        torch.testing.assert_close(got, torch.cat(parts), atol=1e-9, rtol=0)
        weights = torch.randn(got.shape, generator=torch.Generator().manual_seed(1)).double()
        gradients = (
            torch.autograd.grad((weights * one).sum(), used, allow_unused=True, retain_graph=True)
            for one in (got, torch.cat(parts))
        )
        for own, other in zip(*gradients, strict=True):
            assert (own is None) == (other is None)
            if own is not None:
                torch.testing.assert_close(own, other, atol=1e-9, rtol=0)


def test_pairs_of_rows_of_equal_segments():
    first, second = torch.tensor([0, 0, 2, 3]), torch.tensor([0, 1, 1, 2, 2, 2])
    expected = [(i, j) for i, s in enumerate(first) for j, other in enumerate(second) if s == other]
    assert segment_pairs(first, second, 4).T.tolist() == [list(pair) for pair in expected]
    empty = torch.tensor([], dtype=torch.int64)
    assert segment_pairs(first, empty, 4).shape == (2, 0)
    assert segment_pairs(empty, second, 4).shape == (2, 0)
