"""The metrics of an evaluated model, and where they come from."""

import json
from pathlib import Path
from typing import ClassVar, Literal

from manymatch.results.base import EVALUATED, Record, Result
from manymatch.results.retrieval import BothWays, MultiMatch, Recall
from manymatch.results.sets import SetMetrics
from manymatch.util import files


class Metrics(Result, Recall):
    """`multi` is present only if the data set has judgments beyond the annotated pairs, `sets` only
    for methods that embed a sample as several elements. The metrics of a data set's other protocols
    stand beside them under the protocols' names."""

    path: ClassVar[str] = "results/{dataset}/{preset}.json"
    remedy: ClassVar[str] = EVALUATED

    multi: BothWays[MultiMatch] | None = None
    sets: SetMetrics | None = None


class Headline(Result):
    """The few numbers that DVC's tables show. Only data sets with judgments have mAP@R."""

    path: ClassVar[str] = "metrics/{dataset}/{preset}.json"
    remedy: ClassVar[str] = EVALUATED

    rsum: float
    i2t_r1: float
    t2i_r1: float
    i2t_map_at_r: float | None = None
    t2i_map_at_r: float | None = None

    @classmethod
    def of(cls, metrics: Metrics) -> "Headline":
        numbers = {"rsum": metrics.rsum, "i2t_r1": metrics.i2t.r1, "t2i_r1": metrics.t2i.r1}
        if metrics.multi is not None:
            numbers["i2t_map_at_r"] = metrics.multi.i2t.map_at_r
            numbers["t2i_map_at_r"] = metrics.multi.t2i.map_at_r
        return cls.model_validate(numbers)

    def write(self, path: Path) -> None:
        """Write the numbers in the order of this class, because `dvc exp show` cuts columns."""
        files.write_text(path, json.dumps(self.to_json(), indent=2) + "\n")


class Member(Record):
    """One model of an ensemble."""

    preset: str
    method: str
    seed: int
    features: str


class Provenance(Result):
    """Model, data and settings behind a result. The report shows unknown keys as they are.

    An ensemble's `method`, `seed` and `features` are those of its `members`, joined by "+" where
    the members differ.
    """

    path: ClassVar[str] = "provenance/{dataset}/{preset}.json"
    remedy: ClassVar[str] = EVALUATED

    dataset: str
    preset: str
    method: str
    split: str
    seed: int | str
    features: str
    setting: Literal["small-scale", "reproduced", "external"]
    images: int
    captions: int
    checkpoint_sha256: str | None = None
    """The hash of the model; None: scores of another program."""
    members: tuple[Member, ...] = ()
    rerank_beta: float | None = None
    """Weight of the caption's score in a re-ranked result; None: not re-ranked."""
