"""Points of an experiment over several seeds: means, spreads, and whether one is ahead by more than
chance."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

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


def compared(what: str, values: Sequence[float], base: Sequence[float]) -> str:
    """By how much `values` are ahead of `base`, seed by seed, and whether that is more than twice
    the standard error."""
    ahead = Estimate.of([own - other for own, other in zip(values, base, strict=True)])
    return f"{what}: {ahead.mean:+.2f}, {_judged(ahead)}"


def _judged(ahead: Estimate) -> str:
    if ahead.error is None:
        return "of one seed, which says nothing about chance."
    told = f"standard error {ahead.error:.2f}: "
    if abs(ahead.mean) <= 2 * ahead.error:
        return f"{told}not more than twice the standard error."
    return f"{told}{'ahead' if ahead.mean > 0 else 'behind'} by more than twice the standard error."
