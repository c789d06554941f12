"""Sets cut to chosen elements, to see what these can do by themselves (DivE, table 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from manymatch.config.params import Elements
from manymatch.methods.base import Embeddings

Modality = Literal["images", "texts"]


@dataclass(frozen=True)
class Chosen:
    """Some elements of one modality's sets, numbered from 1; the other modality keeps all."""

    modality: Modality
    elements: tuple[int, ...]

    @property
    def name(self) -> str:
        return "+".join(map(str, self.elements))

    def of(self, images: Embeddings, texts: Embeddings) -> tuple[Embeddings, Embeddings]:
        """Images and texts with these elements alone."""
        if self.modality == "images":
            return only(images, self.elements), texts
        return images, only(texts, self.elements)


def only(embeddings: Embeddings, elements: Sequence[int]) -> Embeddings:
    """The embeddings with the given elements (from 1) of their sets alone."""
    return embeddings.elements([element - 1 for element in elements])


def choices(images: Embeddings, texts: Embeddings, wanted: Elements) -> list[Chosen]:
    """Every single element of each modality with more than one, then the `wanted` selections of
    elements that the sets have."""
    return [
        *_choices("images", images.vectors.shape[1], wanted.images),
        *_choices("texts", texts.vectors.shape[1], wanted.texts),
    ]


def _choices(modality: Modality, size: int, wanted: Iterable[tuple[int, ...]]) -> list[Chosen]:
    if size == 1:
        return []
    single = [(element,) for element in range(1, size + 1)]
    more = [elements for elements in wanted if max(elements) <= size]
    return [Chosen(modality, elements) for elements in dict.fromkeys([*single, *more])]
