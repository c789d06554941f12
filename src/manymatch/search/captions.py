"""Texts as a trained model reads them: checked and, for some methods, parsed to scene graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from manymatch.scene_graphs.graph import NO_GRAPH
from manymatch.shards.sample import CaptionEntry
from manymatch.system.errors import DataError
from manymatch.text.caption_text import caption_fault

if TYPE_CHECKING:
    from spacy.language import Language


class Captions:
    """Reads texts for a trained model.

    Args:
        parser: the spaCy model of the scene graphs; None: the method reads no graphs.
    """

    def __init__(self, parser: str | None) -> None:
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
            parsed = [NO_GRAPH] * len(texts)
        else:
            from manymatch.scene_graphs.parser import graphs  # spaCy takes seconds to import

            parsed = list(graphs(self._language, texts, Counter()))
        return [
            CaptionEntry(str(number), text, graph)
            for number, (text, graph) in enumerate(zip(texts, parsed, strict=True))
        ]

    @cached_property
    def _language(self) -> Language:
        from manymatch.scene_graphs.parser import load_model

        assert self._parser is not None
        return load_model(self._parser)
