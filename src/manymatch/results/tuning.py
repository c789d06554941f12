"""Tuning: the settings and the validation rsum of each trial of a preset."""

from __future__ import annotations

from itertools import accumulate
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from manymatch.results.base import Count, Record, Result


class TunedTrial(Record):
    """One training: the best validation `rsum` of its `epochs`, and the processor `seconds` (with
    a GPU, the seconds that passed). A diverged trial may have no rsum."""

    state: Literal["complete", "pruned", "diverged"]
    settings: dict[str, Any]
    rsum: float | None
    epochs: int
    seconds: float


class Tuning(Result):
    """The search for the settings of one preset. Each preset of a comparison has the same budget:
    `trials_allowed` and `hours_allowed` (None: any) of processor time."""

    path: ClassVar[str] = "tuning/{dataset}/{preset}.json"
    remedy: ClassVar[str] = "Run 'manymatch tune {dataset} {preset}' again."

    dataset: str
    preset: str
    method: str
    trials_allowed: Count
    hours_allowed: float | None
    set: dict[str, Any]
    trials: Annotated[list[TunedTrial], Field(min_length=1)]
    version: str | None = None
    git_revision: str | None = None

    @model_validator(mode="after")
    def _has_a_best(self) -> Tuning:
        if not any(trial.state == "complete" for trial in self.trials):
            raise ValueError("no trial is complete")
        return self

    @property
    def best(self) -> int:
        """The number (from 0) of the complete trial with the highest rsum, the first of equals."""
        return max(range(len(self.trials)), key=lambda number: self._rsums[number])

    @property
    def rsum(self) -> float:
        """The rsum of the best trial."""
        return self._rsums[self.best]

    @property
    def best_so_far(self) -> list[tuple[int, float]]:
        """The number of trials (from 1) and the highest rsum of these, from the first complete
        trial on."""
        highest = enumerate(accumulate(self._rsums, max), start=1)
        return [(count, rsum) for count, rsum in highest if rsum >= 0]

    @property
    def hours(self) -> float:
        return sum(trial.seconds for trial in self.trials) / 3600

    @property
    def still_improves(self) -> bool:
        """Whether the best trial is among the last quarter: more trials may be better yet."""
        last = len(self.trials) - 1
        return last > 0 and self.best >= min(0.75 * len(self.trials), last)

    @property
    def _rsums(self) -> list[float]:
        """The rsum of each complete trial, and -1 for the others."""
        return [
            trial.rsum if trial.state == "complete" and trial.rsum is not None else -1.0
            for trial in self.trials
        ]
