"""Queries as a search reads them: embedded, with the words that the model does not know."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manymatch.batch.parallel_map import single_core
from manymatch.methods.embeddings import Embeddings
from manymatch.model.answer import Side
from manymatch.model.model import Model


@dataclass(frozen=True)
class Queries:
    """Embedded queries of one kind.

    Attributes:
        names: what the answers call the queries.
        unknown: for each text the words that the model does not know; None: these are no texts.
        understood: for each text whether the model knows a word of it.
        parse, encode: the seconds that it took to parse and to encode them.
    """

    names: Sequence[str]
    embeddings: Embeddings
    side: Side
    unknown: Sequence[list[str]] | None = None
    understood: Sequence[bool] | None = None
    parse: float = 0.0
    encode: float = 0.0

    @property
    def words(self) -> list[tuple[list[str], bool]]:
        """`unknown` and `understood` for each query."""
        if self.unknown is None or self.understood is None:
            return [([], True)] * len(self.names)
        return list(zip(self.unknown, self.understood, strict=True))


def texts(model: Model, given: Sequence[Any]) -> Queries:
    """Texts as queries."""
    start = time.perf_counter()
    captions = model.parse(given)
    parsed = time.perf_counter()
    # One text is too little for two cores, and torch's threads would slow the scan.
    with single_core() if len(given) == 1 else nullcontext():
        embeddings = model.encode_captions(captions)
    return Queries(
        given,
        embeddings,
        "texts",
        [model.vocabulary.unknown(text) for text in given],
        [model.vocabulary.knows(text) for text in given],
        parsed - start,
        time.perf_counter() - parsed,
    )


def pictures(model: Model, given: Sequence[Any]) -> Queries:
    """Pictures as queries."""
    start = time.perf_counter()
    embeddings = model.encode_images(given, progress=False)
    names = [str(picture) if isinstance(picture, Path) else "a picture" for picture in given]
    return Queries(names, embeddings, "images", encode=time.perf_counter() - start)
