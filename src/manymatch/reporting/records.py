"""Groups of values that several result files share."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict

Mark = Literal["own", "true", "wrong"]
"""`own`: the query's own pair; `true`: judged true though not its own; `wrong`: neither."""

_Value = TypeVar("_Value")


class Record(BaseModel):
    """A group of values; keys beyond the known ones are kept."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)


class OfDataset(Record):
    """What one file holds about one data set."""

    dataset: str


class Named(Record):
    """What one file holds about the experiment `name`."""

    name: str


class Ranks(Record):
    """Recalls in percent, median and mean 1-based rank."""

    r1: float
    r5: float
    r10: float
    medr: float
    meanr: float


class MultiMatch(Record):
    """Metrics against every true item (ECCV Caption), in percent."""

    map_at_r: float
    r_precision: float
    r1: float


class BothWays(Record, Generic[_Value]):
    """Image to text and text to image."""

    i2t: _Value
    t2i: _Value


class Recall(BothWays[Ranks]):
    """Recalls both ways and their sum."""

    rsum: float


def _jpeg(thumbnail: str) -> str:
    try:
        data = base64.b64decode(thumbnail, validate=True)
    except binascii.Error:
        data = b""
    if not data.startswith(b"\xff\xd8"):
        raise ValueError("not a base64 JPEG")
    return thumbnail


Thumbnail = Annotated[str, AfterValidator(_jpeg)]


class Answer(Record):
    """What a query found; on COCO with its `zeta`, in how many object labels its image differs
    from the query's (None: one of the two has no label)."""

    score: float
    mark: Mark
    zeta: int | None = None


class RetrievedCaption(Answer):
    caption_id: str
    caption: str


class RetrievedImage(Answer):
    image_id: str
    thumbnail: Thumbnail | None
