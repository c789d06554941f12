"""Groups of values that several kinds of result files share: recalls, retrieved items, graphs."""

import base64
import binascii
from typing import Annotated, ClassVar, Generic, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, model_validator

from manymatch.results.base import EVALUATED, Record, Result

Mark = Literal["own", "true", "wrong", "unjudged"]
"""`own`: the pair of image and caption as annotated; `true`: a pair that was judged true besides;
`wrong`: a pair that is not true, because every true pair is known or people judged the pair;
`unjudged`: any other pair, which may be true."""

_Value = TypeVar("_Value")


class Metric(NamedTuple):
    """How a metric is shown."""

    label: str
    digits: int | None = 1
    """Decimals; None: as many as the number has."""
    lower_is_better: bool = False


METRICS = {
    "r1": Metric("R@1"),
    "r5": Metric("R@5"),
    "r10": Metric("R@10"),
    "medr": Metric("MedR", digits=None, lower_is_better=True),
    "map_at_r": Metric("mAP@R"),
    "r_precision": Metric("R-P"),
    "others": Metric("R-P of others"),
    "map": Metric("mAP"),
    "map_at_200": Metric("mAP@200"),
    "p_at_200": Metric("P@200"),
}
"""The metrics by the last part of their names in `Record.numbers`, in the order of tables."""


def metric(key: str) -> Metric:
    """How the number `key` of `Record.numbers` is shown, such as "coco_1k.i2t.r1"."""
    name = key.rpartition(".")[2]
    return METRICS.get(name, Metric(name))


class BothWays(Record, Generic[_Value]):
    """Values of image-to-text and text-to-image retrieval."""

    i2t: _Value
    t2i: _Value


class Counts(Record):
    """The numbers of images and of captions."""

    images: int
    captions: int


class Ranks(Record):
    """Recalls in percent; median and mean of the 1-based rank."""

    r1: float
    r5: float
    r10: float
    medr: float
    meanr: float


class Recall(BothWays[Ranks]):
    """Recalls of both directions and the sum of the six recalls."""

    rsum: float


class Ambiguity(Record):
    """For each group of queries with `least` to `2 * least - 1` positives, the number of queries
    and their mAP@R in percent. These are lists of numbers, because DVC would plot a list of
    groups."""

    least: list[int]
    queries: list[int]
    map_at_r: list[float]

    @model_validator(mode="after")
    def _check_lengths(self) -> "Ambiguity":
        if len({len(self.least), len(self.queries), len(self.map_at_r)}) > 1:
            raise ValueError("least, queries and map_at_r differ in length")
        return self


class MultiMatch(Record):
    """Metrics against all positives of a query (ECCV Caption), in percent.

    `others` is the R-P of the positives beyond the annotated ones, which are taken out of the
    ranking. Older files lack `others` and `by_positives`.
    """

    map_at_r: float
    r_precision: float
    r1: float
    others: float | None = None
    by_positives: Ambiguity | None = None


def _jpeg(thumbnail: str) -> str:
    try:
        data = base64.b64decode(thumbnail, validate=True)
    except binascii.Error:
        data = b""
    if not data.startswith(b"\xff\xd8"):
        raise ValueError("not a base64 JPEG")
    return thumbnail


Thumbnail = Annotated[str, AfterValidator(_jpeg)]
"""A JPEG in base64."""


class Answer(Record):
    """A retrieved item.

    `zeta` is the number of object labels in which the item's image differs from the query's image.
    Only COCO has labels; None: one of the two images has none.
    """

    score: float
    mark: Mark
    zeta: int | None = None


class OfImage(Record):
    """Values of one image."""

    image_id: str

    @property
    def id(self) -> str:
        return self.image_id


class OfCaption(Record):
    """Values of one caption."""

    caption_id: str

    @property
    def id(self) -> str:
        return self.caption_id


class RetrievedCaption(Answer, OfCaption):
    """A caption that was retrieved for an image."""

    caption: str


class RetrievedImage(Answer, OfImage):
    """An image that was retrieved for a caption."""

    thumbnail: Thumbnail | None


class Relation(Record):
    """`objects[subject] --label--> objects[object]`."""

    subject: int
    label: str
    object: int


class Graph(Record):
    """The fields of `batch.scene_graph.SceneGraph`, checked: `attributes[i]` are the phrases
    attached to `objects[i]`."""

    objects: tuple[str, ...]
    names: tuple[str, ...]
    attributes: tuple[tuple[str, ...], ...]
    relations: tuple[Relation, ...]

    @model_validator(mode="after")
    def _check_objects(self) -> "Graph":
        count = len(self.objects)
        ends = {end for edge in self.relations for end in (edge.subject, edge.object)}
        if len(self.attributes) != count or not ends <= set(range(count)):
            raise ValueError("attributes or relations of objects that the graph does not have")
        return self


class ImageQuery(OfImage):
    """An image, its captions, the `rank` of the first of these (older files lack it), and the
    captions that the model ranked first."""

    thumbnail: Thumbnail | None
    captions: list[str]
    rank: int | None = None
    retrieved: list[RetrievedCaption]

    @property
    def label(self) -> str:
        return self.captions[0] if self.captions else self.image_id


class CaptionQuery(OfCaption):
    """A caption, its scene graph, its image with the `rank` (older files lack them), and the images
    that the model ranked first."""

    caption: str
    rank: int | None = None
    image_id: str | None = None
    thumbnail: Thumbnail | None = None
    graph: Graph | None
    retrieved: list[RetrievedImage]

    @property
    def label(self) -> str:
        return self.caption


class Duplicate(OfImage):
    """A picture of a group of near-duplicates; only one of the evaluated split has a thumbnail."""

    split: str
    thumbnail: Thumbnail | None = None


class NearDuplicates(Record):
    """The near-duplicates of a data set of one's own: how many pictures are `copies` of others, how
    many groups are in several splits, the first groups with a picture of this split, and how many
    of these were `found` in all."""

    copies: int
    crossing: int
    groups: list[list[Duplicate]]
    found: int | None = None


class Samples(Result):
    """Queries of both kinds: random ones, then those that this model ranks worst. Only a data set
    of one's own has `near_duplicates`."""

    path: ClassVar[str] = "runs/{dataset}/{preset}/samples.json"
    remedy: ClassVar[str] = EVALUATED

    images: list[ImageQuery]
    captions: list[CaptionQuery]
    near_duplicates: NearDuplicates | None = None
