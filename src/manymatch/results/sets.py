"""Sets of embeddings: the metrics and drawings of methods that embed a sample as several
elements."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from manymatch.results.base import EVALUATED, Count, Record, Result
from manymatch.results.retrieval import (
    Counts,
    OfCaption,
    OfImage,
    Recall,
    RetrievedCaption,
    RetrievedImage,
)

COLLAPSED = -4.0
"""With a log circular variance below this value the elements of a set have become one vector. DivE
prints -2.13 for its sets and -7.35 for collapsed sets (section 4.6)."""

PLANE_SIDE = 1000
"""The side of the square in which `evaluation.sets.analysis` places elements."""

Modality = Literal["images", "texts"]
Share = Annotated[float, Field(ge=0.0, le=1.001)]


def _rectangle(rows: list[list[float]]) -> list[list[float]]:
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("expected rows of equal length")
    return rows


Matrix = Annotated[list[list[float]], AfterValidator(_rectangle)]
ShareMatrix = Annotated[list[list[Share]], AfterValidator(_rectangle)]


class ElementMetrics(Record):
    """Metrics of the elements of one modality.

    `log_circular_variance_squared` uses the squared norm, as MaxMatch prints the value. `winners`
    is the effective number of elements that share the best pairs; `distinct` is the mean number of
    different items that the elements of a query retrieve first. `rsum_of` has the rsum of
    selections of elements ("1", "1+3+4"). None: an older experiment did not measure the value.
    """

    log_circular_variance: float
    log_circular_variance_squared: float | None = None
    winners: float
    distinct: float | None = None
    rsum_of: dict[str, float]


class Meanings(Record):
    """Pairs of captions of one image, in percent. `together`: of the pairs with a common object,
    those that match the same element of the image best. `apart`: of the other pairs, those that
    match different elements best. `..._by_chance`: the same if the captions of each image had each
    other's objects at random."""

    together: float
    together_by_chance: float
    apart: float
    apart_by_chance: float


class SetMetrics(Record):
    """The part `sets` of the metrics. `gallery` is the split's number of images and `rsum` that of
    whole sets; a modality with single vectors is None. Older files lack `meanings`."""

    gallery: int
    rsum: float
    images: ElementMetrics | None = None
    texts: ElementMetrics | None = None
    meanings: Meanings | None = None


class SelectionRecall(Record):
    """Recalls with a selection of elements (from 1) of one modality and whole sets of the other."""

    modality: Modality
    elements: list[Count]
    recall: Recall


class ElementPairs(Record):
    """Elements of an image (rows) against elements of the image's captions (columns): the `share`
    of pairs in which the two elements match best, and the mean `cosine`."""

    share: ShareMatrix
    cosine: Matrix

    @model_validator(mode="after")
    def _check_shapes(self) -> "ElementPairs":
        if (len(self.share), len(self.share[0])) != (len(self.cosine), len(self.cosine[0])):
            raise ValueError("share and cosine differ in shape")
        return self


Box = tuple[Share, Share, Share, Share]


class ImageMap(OfImage):
    """Where each element (row of `weights`) looks.

    The regions are the cells of a `grid` with this many rows and columns, or `boxes` (x1 y1 x2 y2
    in 0..1). `size` is the width and height of the thumbnail. `passes` are the weights after each
    pass of methods that refine sets in passes; the last pass is `weights`.
    """

    size: tuple[Count, Count]
    weights: ShareMatrix
    passes: list[ShareMatrix]
    grid: Annotated[int, Field(ge=1, le=64)] | None
    boxes: list[Box] | None

    @model_validator(mode="after")
    def _check_regions(self) -> "ImageMap":
        regions = self.grid**2 if self.grid else len(self.boxes or [])
        for weights in (self.weights, *self.passes):
            if regions != len(weights[0]):
                raise ValueError(f"{len(weights[0])} weights for {regions} regions")
        return self


class CaptionMap(OfCaption):
    """Which words each element (row of `weights`) reads."""

    words: list[str]
    weights: ShareMatrix

    @model_validator(mode="after")
    def _check_words(self) -> "CaptionMap":
        if len(self.words) != len(self.weights[0]):
            raise ValueError(f"{len(self.weights[0])} weights for {len(self.words)} words")
        return self


class Nearest(Record):
    """An item with the `element` (from 1) of its set that is nearest to the query's element."""

    element: Count


class NearestCaption(RetrievedCaption, Nearest):
    """A caption that an element of an image retrieves."""


class NearestImage(RetrievedImage, Nearest):
    """An image that an element of a caption retrieves."""


class ImageAnswers(OfImage):
    """The captions that each element of an image retrieves, nearest first."""

    elements: list[list[NearestCaption]]


class CaptionAnswers(OfCaption):
    """The images that each element of a caption retrieves, nearest first."""

    elements: list[list[NearestImage]]


class ElementAnswers(Record):
    """What the single elements of sampled queries retrieve."""

    images: list[ImageAnswers]
    captions: list[CaptionAnswers]


Coordinate = Annotated[int, Field(ge=0, le=PLANE_SIDE)]


class ProjectedSets(Record):
    """Elements of one modality in the plane: `places` has the (x, y) of each element of each drawn
    set; `vectors` is the number of elements in the split."""

    vectors: int
    places: list[list[tuple[Coordinate, Coordinate]]]


class Projection(Record):
    """t-SNE of the elements of random sets of the split."""

    images: ProjectedSets
    texts: ProjectedSets


class SetDetails(Result):
    """What the report draws of a model's sets."""

    path: ClassVar[str] = "runs/{dataset}/{preset}/sets.json"
    remedy: ClassVar[str] = EVALUATED

    gallery: Counts
    """The items among which selected elements were ranked."""
    whole: Recall
    selections: list[SelectionRecall]
    pairs: ElementPairs
    image_maps: list[ImageMap]
    caption_maps: list[CaptionMap]
    nearest: ElementAnswers
    projection: Projection
