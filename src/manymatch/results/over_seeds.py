"""Experiments on synthetic pairs and on sketches: the metrics of each point with each seed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import Field

from manymatch.results.base import Record, Result

Kind = Literal["pair", "class"]
"""What counts as a positive: the sample's partner, or any sample of the same class."""

_Run = TypeVar("_Run")


class PointOverSeeds(Record, Generic[_Run]):
    """One row: one run for each seed."""

    label: str
    runs: Annotated[list[_Run], Field(min_length=1)]


class SyntheticRecall(Record):
    """R@1 in percent, and the median rank."""

    r1: float
    medr: float


class AssignmentFit(Record):
    """How well the last queue was assigned: the largest `error` of a class's share, in samples.

    Older files have the number of Newton `steps` that would solve the assignment.
    """

    error: float
    steps: int | None = None


class SyntheticRun(Record):
    """One training with one seed."""

    seed: int
    pair: SyntheticRecall
    class_: Annotated[SyntheticRecall, Field(alias="class")]
    assignment: AssignmentFit | None
    seconds: float
    processor_seconds: float

    def recall(self, kind: Kind) -> SyntheticRecall:
        return self.pair if kind == "pair" else self.class_


class SyntheticExperiment(Result):
    """`published` has the paper's R@1 by point and kind."""

    path: ClassVar[str] = "synthetic/{name}.json"
    remedy: ClassVar[str] = "Run 'manymatch experiment' for {name} again."

    name: str
    about: str
    baseline: str | None
    published: dict[str, dict[str, float]]
    seeds: list[int]
    points: Annotated[list[PointOverSeeds[SyntheticRun]], Field(min_length=1)]

    @classmethod
    def read_all(cls, reports: Path) -> list[Self]:
        """All experiments by name; those with a paper's numbers come first."""
        return sorted(super().read_all(reports), key=lambda experiment: not experiment.published)


class SketchRun(Record):
    """One training with one seed, and the metrics of the unseen classes in percent."""

    seed: int
    map: float
    map_at_200: float
    p_at_200: float
    seconds: float


class SketchExperiment(Result):
    """All points of an experiment on one data set of sketches."""

    path: ClassVar[str] = "sketches/{name}.json"
    remedy: ClassVar[str] = "Run 'manymatch experiment' for {name} again."

    name: str
    about: str
    dataset: str
    baseline: str | None
    seeds: list[int]
    points: Annotated[list[PointOverSeeds[SketchRun]], Field(min_length=1)]
