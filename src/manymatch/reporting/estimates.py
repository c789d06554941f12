"""Values over several seeds: means, spreads, and which of two sides is better."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.stats import t as student_t


@dataclass(frozen=True)
class Estimate:
    """The mean, and the sample standard deviation and standard error (None: a single value)."""

    mean: float
    deviation: float | None
    error: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """The estimate of at least one value."""
        mean = statistics.fmean(values)
        if len(values) == 1:
            return cls(mean, None, None)
        deviation = statistics.stdev(values)
        return cls(mean, deviation, deviation / len(values) ** 0.5)

    def text(self, digits: int = 1) -> str:
        """Mean and standard deviation: "3.0 ± 2.6"."""
        mean = f"{self.mean:.{digits}f}"
        return mean if self.deviation is None else f"{mean} ± {self.deviation:.{digits}f}"

    def text_with_error(self) -> str:
        """Mean, standard deviation and standard error: "3.00 ± 2.65 (1.53)"."""
        return self.text(2) + ("" if self.error is None else f" ({self.error:.2f})")


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

        If both sides have the same seeds, the differences of each seed count; else the two means,
        with Welch's degrees of freedom.
        """
        mean = statistics.fmean(side.values()) - statistics.fmean(other.values())
        if min(len(side), len(other)) < 2:
            return cls(mean, None)
        if side.keys() == other.keys():
            squares = [statistics.variance([side[seed] - other[seed] for seed in side]) / len(side)]
            freedom = len(side) - 1.0
        else:
            both = (side, other)
            squares = [statistics.variance(values.values()) / len(values) for values in both]
            shares = [s**2 / (len(values) - 1) for s, values in zip(squares, both, strict=True)]
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
