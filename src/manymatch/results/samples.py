"""A few queries of an evaluated model with the items that the model ranked first."""

from __future__ import annotations

from typing import ClassVar

from manymatch.results.base import Result
from manymatch.results.retrieval import (
    Graph,
    OfCaption,
    OfImage,
    RetrievedCaption,
    RetrievedImage,
    Thumbnail,
)


class ImageQuery(OfImage):
    """An image, its captions, and the captions that the model ranked first."""

    thumbnail: Thumbnail | None
    captions: list[str]
    retrieved: list[RetrievedCaption]

    @property
    def label(self) -> str:
        return self.captions[0] if self.captions else self.image_id


class CaptionQuery(OfCaption):
    """A caption, its scene graph, and the images that the model ranked first."""

    caption: str
    graph: Graph | None
    retrieved: list[RetrievedImage]


class Samples(Result):
    """Random queries of both kinds."""

    path: ClassVar[str] = "runs/{dataset}/{preset}/samples.json"
    remedy: ClassVar[str] = "Run 'manymatch evaluate {dataset} {preset}' again."

    images: list[ImageQuery]
    captions: list[CaptionQuery]
