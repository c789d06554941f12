"""The classes of a trained SwAMP: keywords, captions and pictures of each class."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from manymatch.results.base import Record, Result
from manymatch.results.retrieval import OfCaption, Thumbnail

Keyword = tuple[str, int]
"""A word, and the number of captions that have the word."""


class UsedClasses(Record):
    """The number of classes that hold captions, and that hold images."""

    captions: int
    images: int


class ClusterCaption(OfCaption):
    """A caption of a class."""

    caption: str


class Cluster(Record):
    """One class: its keywords and members. `images` are image ids; only the first images of the
    first classes have `thumbnails`."""

    number: int
    nouns: list[Keyword]
    verbs: list[Keyword]
    captions: list[ClusterCaption]
    images: list[str]
    thumbnails: dict[str, Thumbnail | None]


class Clusters(Result):
    """The classes that hold a caption or an image, those with most captions first. `agreement` is
    the percentage of captions that are in the class of their image."""

    path: ClassVar[str] = "clusters/{dataset}/{preset}.json"
    remedy: ClassVar[str] = "Run 'manymatch clusters {dataset} {preset}' again."

    dataset: str
    split: str
    preset: str
    method: str | None = None
    seed: int | None = None
    checkpoint_sha256: str | None = None
    n_classes: int
    used: UsedClasses
    agreement: Annotated[float, Field(ge=0.0, le=100.0)]
    classes: list[Cluster]
