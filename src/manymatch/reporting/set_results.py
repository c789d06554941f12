"""What evaluation found in the sets of methods with several elements: numbers and drawings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from manymatch.reporting.records import Recall, Record, RetrievedCaption, RetrievedImage

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
    """Of one modality. `log_circular_variance_squared` has the norm squared, as MaxMatch prints it.
    `winners`: how many elements share the best pairs; `distinct`: how many different items the
    elements of a query find. `rsum_of` are the rsums of selections of elements ("1", "1+3+4").
    None in results of ablations from before these numbers were measured."""

    log_circular_variance: float
    log_circular_variance_squared: float | None = None
    winners: float
    distinct: float | None = None
    rsum_of: dict[str, float]


class SetMetrics(Record):
    """`sets` in `reports/results/D/P.json`: `gallery` is the split's number of images, `rsum` that
    of whole sets; a modality with one vector is None."""

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
    or `boxes` (x1 y1 x2 y2 in 0..1). `size` is the thumbnail's width and height. `passes` are the
    weights after each pass, of methods that refine sets in passes; the last are `weights`."""

    image_id: str
    size: tuple[Count, Count]
    weights: Shares
    passes: list[Shares]
    grid: Annotated[int, Field(ge=1, le=64)] | None
    boxes: list[Box] | None

    @model_validator(mode="after")
    def _a_place_for_each_weight(self) -> ImageMap:
        places = self.grid**2 if self.grid else len(self.boxes or [])
        for weights in (self.weights, *self.passes):
            if places != len(weights[0]):
                raise ValueError(f"{len(weights[0])} weights for {places} regions")
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


class NearestCaption(RetrievedCaption):
    """`element`: that of the caption's set (from 1) which the query's element met."""

    element: Count


class NearestImage(RetrievedImage):
    """The same of an image."""

    element: Count


class ImageFinds(Record):
    """What each element of an image finds, nearest first."""

    image_id: str
    elements: list[list[NearestCaption]]


class CaptionFinds(Record):
    """What each element of a caption finds, nearest first."""

    caption_id: str
    elements: list[list[NearestImage]]


class Nearest(Record):
    """What single elements of the sampled queries find."""

    images: list[ImageFinds]
    captions: list[CaptionFinds]


SIDE = 1000
"""The side of the square in which `manymatch.evaluation.sets.projection` places elements."""

Coordinate = Annotated[int, Field(ge=0, le=SIDE)]


class Places(Record):
    """Elements of one modality in the plane: of each drawn set the (x, y) of each element.
    `vectors` is how many the split has."""

    vectors: int
    places: list[list[tuple[Coordinate, Coordinate]]]


class Projection(Record):
    """t-SNE of the elements of random sets of the split."""

    images: Places
    texts: Places


class ShownSets(Record):
    """`reports/runs/D/P/sets.json`."""

    gallery: Gallery
    whole: Recall
    chosen: list[Chosen]
    pairs: Pairs
    image_maps: list[ImageMap]
    caption_maps: list[CaptionMap]
    nearest: Nearest
    projection: Projection
