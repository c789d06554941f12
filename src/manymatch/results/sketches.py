"""Experiments on sketches: retrieval metrics of each point with each seed."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from manymatch.results.base import Record, Result


class SketchRun(Record):
    """One training with one seed, and the metrics of the unseen classes in percent."""

    seed: int
    map: float
    map_at_200: float
    p_at_200: float
    seconds: float


class SketchPoint(Record):
    """One row: one run for each seed."""

    label: str
    runs: Annotated[list[SketchRun], Field(min_length=1)]

    def values(self, metric: str) -> dict[int, float]:
        """A metric of all runs, by seed."""
        return {run.seed: getattr(run, metric) for run in self.runs}


class SketchExperiment(Result):
    """All points of an experiment on one data set of sketches."""

    path: ClassVar[str] = "sketches/{name}.json"
    remedy: ClassVar[str] = "Run 'manymatch experiment' for {name} again."

    name: str
    about: str
    dataset: str
    baseline: str | None
    seeds: list[int]
    points: Annotated[list[SketchPoint], Field(min_length=1)]
