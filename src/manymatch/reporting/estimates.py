"""Points of an experiment over several seeds: means, spreads, and which point is better."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from scipy.stats import t as student_t

from manymatch.reporting import markdown


@dataclass(frozen=True)
class Estimate:
    """Mean, sample standard deviation and standard error (None of a single value)."""

    mean: float
    deviation: float | None
    error: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        if len(values) == 1:
            return cls(values[0], None, None)
        deviation = statistics.stdev(values)
        return cls(statistics.fmean(values), deviation, deviation / len(values) ** 0.5)

    def text(self) -> str:
        spread = "" if self.error is None else f" ± {self.deviation:.2f} ({self.error:.2f})"
        return f"{self.mean:.2f}{spread}"


@dataclass(frozen=True)
class Table:
    """Rows of as many texts as there are `heads`; the first of each is the point."""

    heads: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class ExperimentView:
    """An experiment as the page shows it."""

    name: str
    about: str
    table: Table
    note: str
    differences: list[str]

    def to_markdown(self) -> str:
        """The same as text."""
        lines = markdown.table(self.table.heads, self.table.rows)
        told = [f"- {sentence}" for sentence in self.differences]
        parts = [f"**{self.name}**: {self.about}", "", *lines, "", self.note, "", *told]
        return "\n".join(parts).rstrip() + "\n"


class Labelled(Protocol):
    """A point of an experiment."""

    @property
    def label(self) -> str: ...


Point = TypeVar("Point", bound=Labelled)


def against(points: Sequence[Point], baseline: str | None) -> list[tuple[Point, Point]]:
    """Every point but the baseline, with the baseline; none without it."""
    base = next((point for point in points if point.label == baseline), None)
    return [(point, base) for point in points if base is not None and point is not base]


Verdict = Literal["better", "worse", "not decided"]

_CONFIDENCE = 0.95

VERDICTS = (
    "A verdict is better or worse if the 95% confidence interval of the difference (Student's t) "
    "leaves out 0, and not decided otherwise. Values are paired by seed where both sides have the "
    "same seeds. Three seeds decide only differences that are about 2.5 times their spread over "
    "the seeds; one seed decides nothing."
)


@dataclass(frozen=True)
class Difference:
    """The mean by which one side is ahead of the other, and half the width of its 95% confidence
    interval (None: a side has a single seed)."""

    mean: float
    half_width: float | None

    @classmethod
    def of(cls, side: Mapping[int, float], other: Mapping[int, float]) -> Difference:
        """The difference of two sides, each the values by seed.

        The differences of each seed count where both sides have the same seeds; else the two
        means, with Welch's degrees of freedom.
        """
        mean = statistics.fmean(side.values()) - statistics.fmean(other.values())
        if min(len(side), len(other)) < 2:
            return cls(mean, None)
        if side.keys() == other.keys():
            squares = [statistics.variance([side[seed] - other[seed] for seed in side]) / len(side)]
            freedom = len(side) - 1.0
        else:
            both = (side, other)
            squares = [statistics.variance(each.values()) / len(each) for each in both]
            shares = [s**2 / (len(each) - 1) for s, each in zip(squares, both, strict=True)]
            freedom = sum(squares) ** 2 / sum(shares) if sum(shares) else 1.0
        quantile = float(student_t.ppf((1 + _CONFIDENCE) / 2, freedom))
        return cls(mean, quantile * math.sqrt(sum(squares)))

    @property
    def verdict(self) -> Verdict:
        if self.half_width is None or abs(self.mean) <= self.half_width:
            return "not decided"
        return "better" if self.mean > 0 else "worse"

    def text(self, digits: int = 2) -> str:
        """The numbers: "+2.86 (95% interval 1.90 to 3.82)"."""
        if self.half_width is None:
            return f"{self.mean:+.{digits}f} (no interval)"
        low, high = self.mean - self.half_width, self.mean + self.half_width
        return f"{self.mean:+.{digits}f} (95% interval {low:.{digits}f} to {high:.{digits}f})"


def judged(what: str, side: Mapping[int, float], other: Mapping[int, float]) -> str:
    """How far `side` is ahead of `other`, both by seed, and the verdict."""
    difference = Difference.of(side, other)
    return f"{what}: {difference.text()}: {difference.verdict}."
