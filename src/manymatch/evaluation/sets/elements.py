"""Selections of set elements, to see what they retrieve by themselves (DivE, table 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from manymatch.config.params import Elements
from manymatch.methods.base import Embeddings
from manymatch.results.sets import Modality


@dataclass(frozen=True)
class Selection:
    """Some elements (from 1) of one modality's sets; the sets of the other modality stay whole."""

    modality: Modality
    elements: tuple[int, ...]

    @property
    def name(self) -> str:
        return "+".join(map(str, self.elements))

    def apply(self, images: Embeddings, texts: Embeddings) -> tuple[Embeddings, Embeddings]:
        """Images and texts with only the selected elements."""
        if self.modality == "images":
            return select(images, self.elements), texts
        return images, select(texts, self.elements)


def select(embeddings: Embeddings, elements: Sequence[int]) -> Embeddings:
    """The embeddings with only the given elements (from 1) of their sets."""
    return embeddings.elements([element - 1 for element in elements])


def selections(images: Embeddings, texts: Embeddings, requested: Elements) -> list[Selection]:
    """Every single element of each modality with several elements, then those of the `requested`
    selections whose elements exist."""
    return [
        *_selections("images", images.vectors.shape[1], requested.images),
        *_selections("texts", texts.vectors.shape[1], requested.texts),
    ]


def _selections(
    modality: Modality, size: int, requested: Iterable[tuple[int, ...]]
) -> list[Selection]:
    if size == 1:
        return []
    single = [(element,) for element in range(1, size + 1)]
    existing = [elements for elements in requested if max(elements) <= size]
    return [Selection(modality, elements) for elements in dict.fromkeys([*single, *existing])]
