"""A few queries of an evaluated model with the items that the model ranked first."""

from __future__ import annotations

from typing import ClassVar

from manymatch.results.base import Record, Result
from manymatch.results.graphs import Graph
from manymatch.results.retrieval import RetrievedCaption, RetrievedImage, Thumbnail


class ImageQuery(Record):
    """An image, its captions, and the captions that the model ranked first."""

    image_id: str
    thumbnail: Thumbnail | None
    captions: list[str]
    retrieved: list[RetrievedCaption]


class CaptionQuery(Record):
    """A caption, its scene graph, and the images that the model ranked first."""

    caption_id: str
    caption: str
    graph: Graph | None
    retrieved: list[RetrievedImage]


class Samples(Result):
    """Random queries of both kinds."""

    path: ClassVar[str] = "runs/{dataset}/{preset}/samples.json"
    remedy: ClassVar[str] = "Run 'manymatch evaluate {dataset} {preset}' again."

    images: list[ImageQuery]
    captions: list[CaptionQuery]
