"""CORA's encoder of scene graphs: concepts, then attributes to objects, then objects to objects."""

from itertools import pairwise
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from manymatch.batch.batch import Graphs
from manymatch.batch.padding import PaddedRows, Sequences
from manymatch.config.preset import Count, Probability
from manymatch.config.strict import Strict
from manymatch.networks.encoders.hub_text import TokenEncoder
from manymatch.networks.layers.dropout import Dropout
from manymatch.networks.layers.gru import BiGRU, Directions
from manymatch.networks.layers.linear import glorot_linear, joint_linear
from manymatch.networks.layers.segments import segment_mean, segment_sum
from manymatch.networks.pooling.global_pooling import MeanPooling
from manymatch.networks.pooling.graph_attention import GraphAttention

EdgeForm = Literal["paper", "code"]
GraphForm = Literal["steps", "joint", "sums", "phrases"]

_LENGTHS = (0, 1, 2, 4, 8)
"""Phrases whose lengths are between two neighbours of this list are read together."""


class GraphSettings(Strict):
    """The encoder of scene graphs. The defaults are the paper's, except for `object_edges`, which
    is the released code's."""

    size: Count = 1024
    """D, a multiple of `heads`."""
    heads: Count = 16
    """Number of heads of every attention."""
    graph: GraphForm = "steps"
    """`steps`: attributes to objects, then objects to objects. `joint`: the same number of layers
    over objects and attributes together, after edge context; entities and objects are then the
    same (table 3). Not in the paper: `sums`, no attention; an entity is the sum of its phrases, and
    an object the sum of its entity and the labels of the relations whose subject it is; `phrases`,
    no graph; a caption consists of all its phrases, and an entity is the sum of its phrases."""
    fully_connected: bool = False
    """Attention along all pairs of objects, and of objects and attributes, of a caption instead of
    the parsed edges (table 3). Relations still give edge context."""
    attribute_layers: Count = 1
    object_layers: Count = 2
    edge_form: EdgeForm = "paper"
    """How edge context is averaged: as in eq. 6, or as in the released code, see `EdgeContext`."""
    object_edges: Literal["both_ways", "subject_to_object"] = "both_ways"
    """Whether objects exchange along relations both ways, as in the released code, or only from a
    subject to its object, as in the paper's directed graph. Two objects are neighbours once, even
    with several relations."""
    last_activation: bool = True
    """Whether the last layer ends in a ReLU. Without it, unlike the paper, captions spread over all
    directions, as images do, instead of one orthant, and are learned faster."""
    graph_dropout: Probability = 0.0
    """Dropout of the phrases' vectors, of the messages of edges, of objects before the
    object-object attention, and of nodes between two layers (released code)."""


class Encoded(NamedTuple):
    """`entities (V, D)`: objects with their attributes, in the order of `Graphs.objects`.

    `nodes` are what a caption consists of, and `padding` has their places in the caption: `(V, D)`
    objects in the context of the whole graph, or all phrases in `Graphs.caption_order`.
    """

    entities: Tensor
    nodes: Tensor
    padding: PaddedRows


class ConceptEncoder(nn.Module):
    """Phrases to vectors: word vectors, a GRU, its final state, and a linear layer to D.

    Args:
        words: the word vectors.
        hidden: size of the final state, both directions together (CORA: 300). None, not in the
            paper: no GRU; the mean of the word vectors takes the place of the final state.
        size: D.
        directions: of the GRU (CORA: forward).
        dropout: of the word vectors' elements.

    References:
        Pham et al., CORA, CVPR 2024, sections 3.2 and 6.2.
    """

    def __init__(
        self,
        words: nn.Embedding,
        hidden: int | None,
        size: int,
        directions: Directions = "forward",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.words = words
        self.dropout = Dropout(dropout)
        width = words.embedding_dim
        self.gru = BiGRU(width, hidden, directions) if hidden else None
        self.pool = MeanPooling()
        self.project = glorot_linear(hidden or width, size)

    def forward(self, phrases: Tensor, words: Sequences) -> Tensor:
        """`phrases (P, T)` word ids, each with a word -> `(P, D)`."""
        vectors = self.dropout(self.words(phrases))
        if self.gru is None:
            return self.project(self.pool(vectors, words.mask)[:, 0])
        return self.project(self.gru(vectors, words).final)


class PieceConceptEncoder(nn.Module):
    """Phrases to vectors: a text model, the mean of its last hidden states, a linear layer to D.

    Most phrases have one or two words, a few have eight. On a CPU phrases of similar length are
    read together, which avoids most of the padding. On a GPU one pass reads all phrases: padding
    costs less there than the launches of several passes.
    """

    def __init__(self, reads: TokenEncoder, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self._name, self.pool = reads.name, MeanPooling()
        self.add_module(reads.name, reads)
        self.dropout = Dropout(dropout)
        self.project = glorot_linear(reads.width, size)

    def forward(self, phrases: Tensor, words: Sequences) -> Tensor:
        """`phrases (P, T)` piece ids, each with a piece -> `(P, D)`."""
        reads = getattr(self, self._name)
        if phrases.device.type != "cpu":
            return self.project(self.dropout(self.pool(*reads(phrases, words.mask))[:, 0]))
        width = phrases.shape[1]
        longest_first, means, rows_of_means = words.rows[: len(phrases)] // width, [], []
        for shorter, longest in pairwise((*_LENGTHS, max(_LENGTHS[-1], width))):
            # At position p are the phrases that are longer than p.
            start, end = (sum(words.steps[at : at + 1]) for at in (longest, shorter))
            if start < end:
                rows = longest_first[start:end].sort().values
                read = reads(phrases[rows, :longest], words.mask[rows, :longest])
                means.append(self.pool(*read)[:, 0])
                rows_of_means.append(rows)
        return self.project(self.dropout(torch.cat(means)[torch.cat(rows_of_means).argsort()]))


class EdgeContext(nn.Module):
    """The messages that an object gets from its labelled relations (eq. 6).

    `e'_i = e_i + mean over i's active edges of W_A [r_ij ; e_j]
                + mean over i's passive edges of W_P [r_ji ; e_i]`.
    An edge joins its label with the embedding of its passive entity. The passive entity is the
    relation's object: the other end j of an active edge of i, and i itself on a passive edge of i.
    The form "code" is one mean over active and passive edges together, each through Linear and
    ReLU. `dropout` applies to the messages.

    References:
        Pham et al., CORA, CVPR 2024, section 3.3.2.
    """

    def __init__(self, size: int, form: EdgeForm = "paper", dropout: float = 0.0) -> None:
        super().__init__()
        self.form = form
        self.dropout = Dropout(dropout)
        self.active = glorot_linear(2 * size, size)
        self.passive = glorot_linear(2 * size, size)

    def forward(self, entities: Tensor, labels: Tensor, subject: Tensor, object_: Tensor) -> Tensor:
        """`entities (V, D)`, `labels (E, D)`, rows `(E,)` of both ends -> `(V, D)`."""
        edges = torch.cat([labels, entities.index_select(0, object_)], 1)
        active, passive = map(self.dropout, joint_linear(edges, self.active, self.passive))
        messages, count = torch.cat([active, passive]), len(entities)
        if self.form == "code":
            ends = torch.cat([subject, object_])
            return entities + segment_mean(messages.relu(), ends, count)
        ends = torch.cat([subject, object_ + count])  # the means of both kinds are apart
        return entities + segment_mean(messages, ends, 2 * count).unflatten(0, (2, count)).sum(0)


class SceneGraphEncoder(nn.Module):
    """Two steps of graph attention: object-attribute, then object-object with edge context.

    `concepts` encodes the phrases: `(P, T)` ids and which of them are real -> `(P, D)`.

    References:
        Pham et al., CORA, CVPR 2024, section 3.2.
    """

    def __init__(self, settings: GraphSettings, concepts: nn.Module) -> None:
        super().__init__()
        self.settings, self.concepts = settings, concepts
        self.dropout = Dropout(settings.graph_dropout)
        if settings.graph in ("sums", "phrases"):
            return
        first, second = settings.attribute_layers, settings.object_layers
        if settings.graph == "joint":
            first, second = 0, first + second
        size, heads = settings.size, settings.heads
        self.object_attribute = _layers(size, heads, first)
        self.edge_context = EdgeContext(size, settings.edge_form, settings.graph_dropout)
        self.object_object = _layers(size, heads, second, settings.last_activation)

    def forward(self, graphs: Graphs) -> Encoded:
        concepts = self.dropout(self.concepts(graphs.phrases, graphs.phrase_words))
        form = self.settings.graph
        if form in ("sums", "phrases"):
            return _plain(graphs, concepts, form)
        if form == "joint":
            return self._joint(graphs, concepts)
        return self._two_steps(graphs, concepts)

    def _two_steps(self, graphs: Graphs, concepts: Tensor) -> Encoded:
        """Objects and attributes exchange along their edges, then the objects alone."""
        nodes, labels = _nodes(graphs, concepts)
        nodes = self._through(self.object_attribute, nodes, self._binding(graphs))
        entities = nodes[: len(graphs.objects)]
        objects = self._contextual(graphs, labels, entities)
        objects = self._through(self.object_object, objects, self._object_edges(graphs))
        return Encoded(entities, objects, graphs.caption_objects)

    def _joint(self, graphs: Graphs, concepts: Tensor) -> Encoded:
        """All nodes exchange along all edges at once."""
        (nodes, labels), n_objects = _nodes(graphs, concepts), len(graphs.objects)
        objects = self._contextual(graphs, labels, nodes[:n_objects])
        edges = torch.cat([self._binding(graphs), self._object_edges(graphs)], 1)
        nodes = self._through(self.object_object, torch.cat([objects, nodes[n_objects:]]), edges)
        return Encoded(nodes[:n_objects], nodes[:n_objects], graphs.caption_objects)

    def _contextual(self, graphs: Graphs, labels: Tensor, objects: Tensor) -> Tensor:
        ends = graphs.relation_subject, graphs.relation_object
        return self.dropout(self.edge_context(objects, labels, *ends))

    def _through(self, layers: nn.ModuleList, nodes: Tensor, edges: Tensor) -> Tensor:
        for number, layer in enumerate(layers):
            nodes = layer(self.dropout(nodes) if number else nodes, edges)
        return nodes

    def _binding(self, graphs: Graphs) -> Tensor:
        """`(2, E)` edges between objects and attributes; attributes are numbered after objects."""
        return graphs.edges.all_binding if self.settings.fully_connected else graphs.edges.binding

    def _object_edges(self, graphs: Graphs) -> Tensor:
        """`(2, E)` edges between objects."""
        if self.settings.fully_connected:
            return graphs.edges.all_objects
        if self.settings.object_edges == "both_ways":
            return graphs.edges.related
        return graphs.edges.subject_to_object


def _plain(graphs: Graphs, concepts: Tensor, form: GraphForm) -> Encoded:
    """An entity is the sum of an object and its attributes. A node is the sum of an entity and the
    labels of the relations whose subject it is, or any phrase of the caption."""
    (nodes, labels), n_objects = _nodes(graphs, concepts), len(graphs.objects)
    source, target = graphs.edges.binding
    bound = nodes + segment_sum(nodes.index_select(0, source), target, len(nodes))
    entities = bound[:n_objects]
    if form == "phrases":
        phrases = torch.cat([nodes, labels]).index_select(0, graphs.caption_order)
        return Encoded(entities, phrases, graphs.caption_nodes)
    relation_sums = segment_sum(labels, graphs.relation_subject, n_objects)
    return Encoded(entities, entities + relation_sums, graphs.caption_objects)


def _nodes(graphs: Graphs, concepts: Tensor) -> tuple[Tensor, Tensor]:
    """The vectors of all objects and attributes, and of the relations' labels."""
    rows = torch.cat([graphs.objects, graphs.attributes, graphs.relations])
    labels = len(graphs.relations)
    nodes, label_vectors = concepts.index_select(0, rows).split([len(rows) - labels, labels])
    return nodes, label_vectors


def _layers(size: int, heads: int, count: int, last_activation: bool = True) -> nn.ModuleList:
    return nn.ModuleList(
        GraphAttention(size, size, heads, activate=last_activation or layer < count - 1)
        for layer in range(count)
    )
