"""Tuning: the settings and the validation rsum of each trial of a preset."""

from itertools import accumulate
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from manymatch.results.base import Count, Record, Result


class TunedTrial(Record):
    """One training: the best validation `rsum` of its `epochs`, and the processor `seconds` (with
    a GPU, the seconds that passed). A diverged trial may have no rsum. `curve` is the rsum after
    each epoch at the full rate. `repeats` are the rsums of the same settings with the first seeds,
    in longer trainings where the space asks for these."""

    state: Literal["complete", "pruned", "diverged"]
    settings: dict[str, Any]
    rsum: float | None
    epochs: int
    seconds: float
    curve: list[float] = Field(default_factory=list)
    repeats: list[float] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_rsum(self) -> Self:
        if self.state == "complete" and self.rsum is None:
            raise ValueError("a complete trial has no rsum")
        return self

    @property
    def mean(self) -> float:
        """The mean rsum over the repeats; -1 for a trial that is not complete."""
        if self.state != "complete" or self.rsum is None:
            return -1.0
        return fmean(self.repeats or [self.rsum])


class Tuning(Result):
    """The search for the settings of one preset. Each preset of a comparison has the same budget:
    `trials_allowed` and `hours_allowed` (None: any) of processor time. `search` is the hash of
    preset, space and data: a search with the same hash can go on from these trials."""

    path: ClassVar[str] = "tuning/{dataset}/{preset}.json"
    remedy: ClassVar[str] = "Run 'manymatch tune {dataset} {preset}' again."

    dataset: str
    preset: str
    method: str
    search: str | None = None
    trials_allowed: Count
    hours_allowed: float | None
    set: dict[str, Any]
    trials: Annotated[list[TunedTrial], Field(min_length=1)]
    version: str | None = None
    git_revision: str | None = None

    @model_validator(mode="after")
    def _has_a_best(self) -> Self:
        if not any(trial.state == "complete" for trial in self.trials):
            raise ValueError("no trial is complete")
        return self

    @property
    def best(self) -> int:
        """The number (from 0) of the complete trial with the highest mean rsum, the first of
        equals. If trials were repeated, one of these is best."""
        repeated = [number for number, trial in enumerate(self.trials) if trial.repeats]
        return max(repeated or range(len(self.trials)), key=lambda n: self.trials[n].mean)

    @property
    def rsum(self) -> float:
        """The mean rsum of the best trial."""
        return self.trials[self.best].mean

    @property
    def best_so_far(self) -> list[tuple[int, float]]:
        """The number of trials (from 1) and the highest rsum of these with one seed, from the
        first complete trial on."""
        rsums = (trial.rsum if trial.state == "complete" else None for trial in self.trials)
        highest = enumerate(accumulate((-1.0 if r is None else r for r in rsums), max), start=1)
        return [(count, rsum) for count, rsum in highest if rsum >= 0]

    @property
    def hours(self) -> float:
        return sum(trial.seconds for trial in self.trials) / 3600

    @property
    def still_improves(self) -> bool:
        """Whether the best trial is among the last quarter: more trials may be better yet."""
        last = len(self.trials) - 1
        return last > 0 and self.best >= min(0.75 * len(self.trials), last)
