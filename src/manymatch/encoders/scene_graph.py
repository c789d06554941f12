"""CORA's encoder of scene graphs: concepts, then attributes to objects, then objects to objects."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from manymatch.layers.glorot import glorot_linear
from manymatch.layers.gru import BiGRU
from manymatch.layers.segments import segment_mean
from manymatch.pooling.graph_attention import GraphAttention
from manymatch.shards.batch import Graphs

EdgeForm = Literal["paper", "code"]


class Encoded(NamedTuple):
    """`entities (V, D)`: objects that know their attributes; `objects (V, D)`: that know the
    whole graph. Both flat, in the order of `Graphs.objects`."""

    entities: Tensor
    objects: Tensor


class ConceptEncoder(nn.Module):
    """Phrases to vectors: word vectors, bi-GRU, both final states, FC to D."""

    def __init__(self, words: nn.Embedding, hidden: int, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.words = words
        self.dropout = nn.Dropout(dropout)
        self.gru = BiGRU(words.embedding_dim, 2 * hidden, directions="concatenate")
        self.project = glorot_linear(2 * hidden, size)

    def forward(self, phrases: Tensor, lengths: Tensor) -> Tensor:
        """`phrases (P, T)` word ids, `lengths (P,)` >= 1 -> `(P, D)`."""
        mask = torch.arange(phrases.shape[1], device=phrases.device) < lengths[:, None]
        return self.project(self.gru(self.dropout(self.words(phrases)), mask).final)


class EdgeContext(nn.Module):
    """What an object learns from the labelled relations it takes part in (eq. 6).

    `e'_i = e_i + mean over i's active edges of W_A [r_ij ; e_j]
                + mean over i's passive edges of W_P [r_ji ; e_j]`.
    Form "code": one mean over active and passive edges together, each through Linear and ReLU.
    """

    def __init__(self, size: int, form: EdgeForm = "paper") -> None:
        super().__init__()
        self.form = form
        self.active = glorot_linear(2 * size, size)
        self.passive = glorot_linear(2 * size, size)

    def forward(self, entities: Tensor, labels: Tensor, subject: Tensor, object_: Tensor) -> Tensor:
        """`entities (V, D)`, `labels (E, D)`, rows `(E,)` of both ends -> `(V, D)`."""
        active = self.active(torch.cat([labels, entities[object_]], 1))
        passive = self.passive(torch.cat([labels, entities[subject]], 1))
        count = len(entities)
        if self.form == "code":
            messages, ends = torch.cat([active, passive]).relu(), torch.cat([subject, object_])
            return entities + segment_mean(messages, ends, count)
        gathered = segment_mean(active, subject, count) + segment_mean(passive, object_, count)
        return entities + gathered


class SceneGraphEncoder(nn.Module):
    """Two steps of graph attention: object-attribute, then object-object with edge context.

    Args:
        concepts: encoder of the phrases.
        size: D, a multiple of `heads`.
        attribute_layers, object_layers: GATv2 layers of the two steps (CORA: 1 and 2).
        edge_form: see `EdgeContext`.
        last_activation: whether the last layer ends in its ReLU (CORA: it does).

    References:
        Pham et al., CORA, CVPR 2024, section 3.2.
    """

    def __init__(
        self,
        concepts: ConceptEncoder,
        size: int,
        heads: int = 16,
        attribute_layers: int = 1,
        object_layers: int = 2,
        edge_form: EdgeForm = "paper",
        last_activation: bool = True,
    ) -> None:
        super().__init__()
        self.concepts = concepts
        self.object_attribute = _layers(size, heads, attribute_layers)
        self.edge_context = EdgeContext(size, edge_form)
        self.object_object = _layers(size, heads, object_layers, last_activation)

    def forward(self, graphs: Graphs) -> Encoded:
        concepts = self.concepts(graphs.phrases, graphs.phrase_lengths)
        entities = self._entities(graphs, concepts)
        nodes = self.edge_context(
            entities, concepts[graphs.relations], graphs.relation_subject, graphs.relation_object
        )
        edges = torch.stack([graphs.relation_subject, graphs.relation_object])
        for layer in self.object_object:
            nodes = layer(nodes, edges)
        return Encoded(entities, nodes)

    def _entities(self, graphs: Graphs, concepts: Tensor) -> Tensor:
        """Objects and attributes exchange along their edges; the objects are kept."""
        nodes = concepts[torch.cat([graphs.objects, graphs.attributes])]
        n_objects = len(graphs.objects)
        attributes = torch.arange(n_objects, len(nodes), device=nodes.device)
        edges = both_ways(graphs.attribute_object, attributes)
        for layer in self.object_attribute:
            nodes = layer(nodes, edges)
        return nodes[:n_objects]


def both_ways(first: Tensor, second: Tensor) -> Tensor:
    """`(2, 2E)` edges from each first to its second and back."""
    return torch.stack([torch.cat([first, second]), torch.cat([second, first])])


def _layers(size: int, heads: int, count: int, last_activation: bool = True) -> nn.ModuleList:
    return nn.ModuleList(
        GraphAttention(size, size, heads, activate=last_activation or layer < count - 1)
        for layer in range(count)
    )
