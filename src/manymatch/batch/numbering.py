"""Captions and scene graphs as numbers. Text is converted once for each sample."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from manymatch.batch.batch import name_id
from manymatch.batch.pieces import Pieces
from manymatch.batch.scene_graph import SceneGraph
from manymatch.batch.wordpieces import AnyVocabulary

Phrase = tuple[int, ...]
"""Word ids, at least one."""


@dataclass(frozen=True)
class CaptionEntry:
    """A caption with its scene graph."""

    id: str
    text: str
    graph: SceneGraph


class NumberedGraph(NamedTuple):
    """A scene graph in numbers.

    `attributes` are (object, phrase, name id) in the order of the objects; `relations` are
    (subject, phrase, object). Objects are numbered within the caption. `undropped` is the graph
    before objects or attributes were dropped, if any could be.
    """

    objects: list[Phrase]
    names: list[int]
    attributes: list[tuple[int, Phrase, int]]
    relations: list[tuple[int, Phrase, int]]
    undropped: "NumberedGraph | None" = None


class NumberedCaption(NamedTuple):
    """The word ids of a caption (at least one) and its graph. `sizes` is the number of ids of each
    word; without sizes each word has one id."""

    id: str
    words: Phrase
    graph: NumberedGraph
    sizes: Phrase = ()


class Numbering:
    """Converts captions to word or wordpiece ids. Phrases are cached, because many are repeated."""

    def __init__(self, vocabulary: AnyVocabulary) -> None:
        self._vocabulary = vocabulary
        self._phrase = lru_cache(maxsize=65_536)(self.words)
        self._name = lru_cache(maxsize=65_536)(name_id)

    def __reduce__(self) -> tuple:
        return Numbering, (self._vocabulary,)  # the caches are not pickled

    def words(self, text: str) -> Phrase:
        """The ids of the words of a text. A text without words counts as one unknown word."""
        return tuple(self._vocabulary.encode(text)) or (self._vocabulary.UNK,)

    def caption(self, entry: CaptionEntry, sized: bool = False) -> NumberedCaption:
        """The caption and its graph in numbers; `sized`: with the sizes of words of several ids."""
        graph = self._graph(entry.graph)
        if sized and isinstance(self._vocabulary, Pieces):
            words, sizes = self._vocabulary.encode_words(entry.text)
            if words:
                return NumberedCaption(entry.id, tuple(words), graph, tuple(sizes))
        return NumberedCaption(entry.id, self.words(entry.text), graph)

    def _graph(self, graph: SceneGraph) -> NumberedGraph:
        phrase, name = self._phrase, self._name
        return NumberedGraph(
            objects=[phrase(text) for text in graph.objects],
            names=[name(text) for text in graph.names],
            attributes=[
                (row, phrase(text), name(text))
                for row, texts in enumerate(graph.attributes)
                for text in texts
            ],
            relations=[
                (relation.subject, phrase(relation.label), relation.object)
                for relation in graph.relations
            ],
        )
