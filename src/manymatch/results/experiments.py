"""Experiments on presets: the metrics of each point with each seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from manymatch.results.base import Record, Result
from manymatch.results.retrieval import BothWays, MultiMatch
from manymatch.results.sets import ElementPairs, SetMetrics


class ExperimentMetrics(Record):
    """The metrics that `evaluate` wrote. Older files lack some of the keys."""

    rsum: float
    multi: BothWays[MultiMatch] | None = None
    sets: SetMetrics | None = None


class Hits(Record):
    """Every query of a ranking as a digit: within how many of the cuts 1, 5 and 10 is the rank of
    the query's first positive?

    `i2t` has a digit for each image. `t2i` has a word for each image, in the same order, with a
    digit for each caption of the image. The rsum is 100 times the sum of both means.
    """

    i2t: Annotated[str, Field(pattern="^[0-3]+$")]
    t2i: Annotated[str, Field(pattern="^[0-3]+( [0-3]+)*$")]

    @model_validator(mode="after")
    def _check_images(self) -> Self:
        if len(self.i2t) != len(self.t2i.split()):
            raise ValueError("i2t and t2i differ in the number of images")
        return self

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of images and of captions."""
        return len(self.i2t), len(self.t2i.replace(" ", ""))


class ExperimentRun(Record):
    """One training and its test metrics. `seconds` is None if training was interrupted; `pairs`
    are those of set elements, if the method has sets. Older files have no `hits`."""

    seed: int
    metrics: ExperimentMetrics
    hits: Hits | None = None
    seconds: float | None = None
    pairs: ElementPairs | None = None


def value_text(value: Any) -> str:
    """A setting as labels and tables write the value."""
    return value if isinstance(value, str) else json.dumps(value)


class ExperimentPoint(Record):
    """One row: the settings that vary, and one run for each seed."""

    label: str
    settings: dict[str, Any]
    runs: Annotated[list[ExperimentRun], Field(min_length=1)]


class Experiment(Result):
    """`keys` are the varied settings of a grid; the list is empty if the points have names."""

    path: ClassVar[str] = "experiments/{dataset}/{name}.json"
    remedy: ClassVar[str] = "Run 'manymatch experiment' for {name} again."

    dataset: str
    name: str
    about: str
    preset: str | None
    keys: list[str]
    seeds: list[int]
    split: str
    images: int
    captions: int
    setting: Literal["small-scale", "reproduced"]
    points: Annotated[list[ExperimentPoint], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_points(self) -> Self:
        labels = [point.label for point in self.points]
        if len({*labels}) < len(labels):
            raise ValueError("two points have the same label")
        for point in self.points:
            if missing := {*self.keys} - {*point.settings}:
                raise ValueError(f"{point.label}: the setting '{min(missing)}' is missing")
            if len({run.seed for run in point.runs}) < len(point.runs):
                raise ValueError(f"{point.label}: two runs have the same seed")
            sizes = {run.hits.sizes for run in point.runs if run.hits}
            if sizes - {(self.images, self.captions)}:
                raise ValueError(f"{point.label}: the hits are not those of all queries")
        return self

    @property
    def compares_methods(self) -> bool:
        """Whether the points are whole methods. Such points are shown best first."""
        return self.keys == ["preset"]

    @classmethod
    def read_all(cls, reports: Path) -> list[Self]:
        """All experiments by data set and name; those of methods come first."""
        return sorted(
            super().read_all(reports),
            key=lambda one: (one.dataset, not one.compares_methods),
        )
