"""What evaluation found in the sets of methods with several elements: numbers and drawings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from manymatch.reporting.records import Recall, Record

COLLAPSED = -4.0
"""A log circular variance below this: the elements of a set have become one vector. DivE prints
-2.13 for its sets and -7.35 for collapsed ones (section 4.6)."""

Modality = Literal["images", "texts"]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, le=1.001)]


def _rectangle(rows: list[list[float]]) -> list[list[float]]:
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("expected rows of equal length")
    return rows


Table = Annotated[list[list[float]], AfterValidator(_rectangle)]
Shares = Annotated[list[list[Share]], AfterValidator(_rectangle)]


class ElementMetrics(Record):
    """Of one modality. `winners`: how many elements share the best pairs. `rsum_of` are the rsums
    of selections of elements ("1", "1+3+4")."""

    log_circular_variance: float
    winners: float
    rsum_of: dict[str, float]


class SetMetrics(Record):
    """`sets` in `reports/metrics/D/P.json`. `rsum`, of whole sets, and the `rsum_of` are on the
    first `gallery` images and their captions; a modality with one vector is None."""

    gallery: int
    rsum: float
    images: ElementMetrics | None = None
    texts: ElementMetrics | None = None


class Gallery(Record):
    """How many images and captions chosen elements were ranked among."""

    images: int
    captions: int


class Chosen(Record):
    """Recalls with these elements (from 1) of one modality, the other's sets whole."""

    modality: Modality
    elements: list[Count]
    recall: Recall


class Pairs(Record):
    """Of all own pairs, a row an image element and a column a text element: the `share` in which
    the two are the best matching pair, and their mean `cosine`."""

    share: Shares
    cosine: Table

    @model_validator(mode="after")
    def _same_shape(self) -> Pairs:
        if (len(self.share), len(self.share[0])) != (len(self.cosine), len(self.cosine[0])):
            raise ValueError("share and cosine differ in shape")
        return self


Box = tuple[Share, Share, Share, Share]


class ImageMap(Record):
    """Where each element (row of `weights`) looks: cells of a `grid` of so many rows and columns,
    or `boxes` (x1 y1 x2 y2 in 0..1). `size` is the thumbnail's width and height."""

    image_id: str
    size: tuple[Count, Count]
    weights: Shares
    grid: Annotated[int, Field(ge=1, le=64)] | None
    boxes: list[Box] | None

    @model_validator(mode="after")
    def _a_place_for_each_weight(self) -> ImageMap:
        places = self.grid**2 if self.grid else len(self.boxes or [])
        if places != len(self.weights[0]):
            raise ValueError(f"{len(self.weights[0])} weights for {places} regions")
        return self


class CaptionMap(Record):
    """Which words each element (row of `weights`) reads."""

    caption_id: str
    words: list[str]
    weights: Shares

    @model_validator(mode="after")
    def _a_word_for_each_weight(self) -> CaptionMap:
        if len(self.words) != len(self.weights[0]):
            raise ValueError(f"{len(self.weights[0])} weights for {len(self.words)} words")
        return self


class Point(Record):
    """An element in the plane: of image number `image` (from 0) or of its caption (from 1)."""

    x: float
    y: float
    image: Annotated[int, Field(ge=0)]
    modality: Modality
    element: Count
    caption: Count | None


class Projection(Record):
    """t-SNE of the elements of some images and their captions; `images` are the ids."""

    images: list[str]
    points: list[Point]

    @model_validator(mode="after")
    def _images_there(self) -> Projection:
        if any(point.image >= len(self.images) for point in self.points):
            raise ValueError("a point of an image that is not there")
        return self


class ShownSets(Record):
    """`reports/runs/D/P/sets.json`."""

    gallery: Gallery
    whole: Recall
    chosen: list[Chosen]
    pairs: Pairs
    image_maps: list[ImageMap]
    caption_maps: list[CaptionMap]
    projection: Projection
