"""Texts as a trained model reads them: numbered words and, for some methods, a scene graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from manymatch.scene_graphs.graph import SceneGraph
from manymatch.shards.numbering import NumberedCaption, Numbering
from manymatch.shards.sample import CaptionEntry
from manymatch.system.errors import DataError
from manymatch.text.caption_text import caption_fault
from manymatch.text.wordpieces import AnyVocabulary

if TYPE_CHECKING:
    from spacy.language import Language

_NO_GRAPH = SceneGraph((), (), (), ())


class Captions:
    """Reads texts for a trained model.

    Args:
        vocabulary: the model's words or wordpieces.
        parser: the spaCy model of the scene graphs; None: the method reads no graphs.
    """

    def __init__(self, vocabulary: AnyVocabulary, parser: str | None) -> None:
        self._numbering = Numbering(vocabulary)
        self._parser = parser

    def entries(self, texts: Sequence[str]) -> list[CaptionEntry]:
        """The texts with their scene graphs, parsed as one batch.

        Raises:
            DataError: a text is empty, too long or not printable.
        """
        for number, text in enumerate(texts):
            if fault := caption_fault(text):
                raise DataError(f"text {number}: {fault}")
        if self._parser is None:
            parsed = [_NO_GRAPH] * len(texts)
        else:
            from manymatch.scene_graphs.parser import graphs  # spaCy takes seconds to import

            parsed = list(graphs(self._language, texts, Counter()))
        return [
            CaptionEntry(str(number), text, graph)
            for number, (text, graph) in enumerate(zip(texts, parsed, strict=True))
        ]

    def numbered(self, texts: Sequence[str]) -> list[NumberedCaption]:
        """The texts as numbers; see `entries`."""
        return [self._numbering.caption(entry) for entry in self.entries(texts)]

    @cached_property
    def _language(self) -> Language:
        from manymatch.scene_graphs.parser import load_model

        assert self._parser is not None
        return load_model(self._parser)
