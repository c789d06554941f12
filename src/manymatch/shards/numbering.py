"""Captions and scene graphs as word numbers: text is looked at once a sample, never in a batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from manymatch.scene_graphs.graph import SceneGraph
from manymatch.shards.batch import name_id
from manymatch.shards.sample import CaptionEntry
from manymatch.text.wordpieces import AnyVocabulary

Phrase = tuple[int, ...]
"""Word ids, at least one."""


@dataclass(frozen=True)
class NumberedGraph:
    """`attributes` are (object, phrase, name id) in the objects' order; `relations` are
    (subject, phrase, object). Objects are counted within the caption."""

    objects: list[Phrase]
    names: list[int]
    attributes: list[tuple[int, Phrase, int]]
    relations: list[tuple[int, Phrase, int]]


@dataclass(frozen=True)
class NumberedCaption:
    """A caption's word ids (at least one) and graph."""

    id: str
    words: Phrase
    graph: NumberedGraph


class Numbering:
    """Numbers captions by words or wordpieces. Phrases repeat so much that they are remembered."""

    def __init__(self, vocabulary: AnyVocabulary) -> None:
        self._vocabulary = vocabulary
        self._phrase = lru_cache(maxsize=65_536)(self.words)
        self._name = lru_cache(maxsize=65_536)(name_id)

    def __reduce__(self) -> tuple:
        return Numbering, (self._vocabulary,)  # what is remembered does not travel

    def words(self, text: str) -> Phrase:
        """The ids of the text's words; text without any word is one unknown word."""
        return tuple(self._vocabulary.encode(text)) or (self._vocabulary.UNK,)

    def caption(self, entry: CaptionEntry) -> NumberedCaption:
        return NumberedCaption(entry.id, self.words(entry.text), self._graph(entry.graph))

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
