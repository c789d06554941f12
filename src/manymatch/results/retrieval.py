"""Groups of values that several kinds of result files share: recalls and retrieved items."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import AfterValidator

from manymatch.results.base import Record

Mark = Literal["own", "true", "wrong"]
"""`own`: the pair of image and caption as annotated; `true`: a pair that was judged true besides;
`wrong`: any other pair."""

_Value = TypeVar("_Value")


class BothWays(Record, Generic[_Value]):
    """Values of image-to-text and text-to-image retrieval."""

    i2t: _Value
    t2i: _Value


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


class MultiMatch(Record):
    """Metrics against all positives of a query (ECCV Caption), in percent."""

    map_at_r: float
    r_precision: float
    r1: float


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


class RetrievedCaption(Answer):
    """A caption that was retrieved for an image."""

    caption_id: str
    caption: str


class RetrievedImage(Answer):
    """An image that was retrieved for a caption."""

    image_id: str
    thumbnail: Thumbnail | None
