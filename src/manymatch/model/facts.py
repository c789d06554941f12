"""`model.json`: what a trained model says about itself. Its author may be anybody."""

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from manymatch.config.names import ParserName
from manymatch.results.base import Record
from manymatch.util.errors import CheckpointError, DataError, content_of
from manymatch.util.json_file import read_object
from manymatch.util.seal import open_sealed

FACTS = "model.json"
REMEDY = "Train the model again, or run 'dvc checkout --force'"
_MOST = 2**20
_MOST_BYTES = 2**26
"""The largest size of the file. Two curves of `_MOST` points fit."""

Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=1, le=2**31)]
Curve = Annotated[
    list[Annotated[list[float], Field(min_length=1, max_length=_MOST)]],
    Field(min_length=2, max_length=2),
]
"""Scores in ascending order, and the shares of right results at them."""


class PrecisionOf(Record, strict=True):
    """What the curves of precision rest on, as in `training.validation`."""

    images: Count
    right: Literal["all", "judged", "own"]


class Facts(Record, strict=True):
    """The content of `model.json`. Unknown keys are kept, and nothing reads them.

    Attributes:
        feature_width: F, the width of the image features.
        extraction: how the image features were made, as their store says: "preprocessing",
            "weights_sha256" and others.
        precision: how far to trust a score, for the side that asks (`training.validation`).
        backbone: the configuration and the recipe of a backbone (`networks.encoders.hub_image`).
        trained_in: the precision of the training, as the preset names precisions.
    """

    method: str
    feature_width: Annotated[int, Field(ge=1, le=_MOST)]
    weights_sha256: Hash
    preset_sha256: Hash
    vocabulary_sha256: Hash
    dataset: str | None = None
    extraction: dict[str, str] | None = None
    backbone: dict[str, Any] | None = None
    parser: ParserName | None = None
    epoch: Count | None = None
    epochs: Count | None = None
    rsum: float | None = None
    precision: dict[Literal["image", "text"], Curve] | None = None
    precision_of: PrecisionOf | None = None
    trained_in: str | None = None
    warm_start_sha256: Hash | None = None

    @model_validator(mode="after")
    def _curves_are_functions(self) -> Self:
        curves = self.precision
        if curves is None:
            return self
        if len(curves) < 2:
            raise ValueError("precision: expected 'image' and 'text'")
        for side, (scores, shares) in curves.items():
            if len(scores) != len(shares):
                raise ValueError(
                    f"precision.{side}: {len(scores)} scores, but {len(shares)} shares"
                )
            if any(later < earlier for earlier, later in pairwise(scores)):
                raise ValueError(f"precision.{side}: the scores do not ascend")
            if min(shares) < 0 or max(shares) > 1:
                raise ValueError(f"precision.{side}: a share is not in 0..1")
        return self


def facts(folder: Path) -> dict[str, Any]:
    """The content of `model.json` in `folder`, with the keys and types of `Facts`.

    Raises:
        CheckpointError: the file is missing or damaged, or has another content.
    """
    path = folder / FACTS
    try:
        open_sealed(folder, REMEDY, whole_bytes=None).check(FACTS)
        content = read_object(path, _MOST_BYTES)
        with content_of(path, "the facts of a model", REMEDY):
            Facts.model_validate(content)
    except DataError as error:
        raise CheckpointError(str(error)) from None
    return content
