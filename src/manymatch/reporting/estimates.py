"""Values over several seeds: means, spreads, and which of two sides is better."""

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit  # scipy.stats takes half a second to load

from manymatch.results.experiments import Hits


@dataclass(frozen=True)
class Estimate:
    """The mean, and the sample standard deviation and standard error (None: a single value).

    `sound` is the estimate without the seeds that collapsed; None if no seed did.
    """

    mean: float
    deviation: float | None
    error: float | None
    seeds: int = 1
    sound: "Estimate | None" = None

    @classmethod
    def of(cls, values: Collection[float]) -> "Estimate":
        """The estimate of at least one value."""
        mean, seeds = statistics.fmean(values), len(values)
        if seeds == 1:
            return cls(mean, None, None)
        deviation = statistics.stdev(values)
        return cls(mean, deviation, deviation / seeds**0.5, seeds)

    @classmethod
    def score_estimate(cls, values: Collection[float]) -> "Estimate":
        """The estimate of scores over seeds, where more is better. A seed whose score is below half
        of the best seed's has collapsed. Values below 0 are not scores. They never count as
        collapsed."""
        estimate, best = cls.of(values), max(values)
        sound = [value for value in values if value >= best / 2]
        if min(values) < 0 or len(sound) == len(values):
            return estimate
        return replace(estimate, sound=cls.of(sound))

    def text(self, digits: int = 1) -> str:
        """Mean and standard deviation: "3.0 ± 2.6"."""
        mean = f"{self.mean:.{digits}f}"
        return mean if self.deviation is None else f"{mean} ± {self.deviation:.{digits}f}"

    def text_with_error(self) -> str:
        """Mean, standard deviation and standard error: "3.00 ± 2.65 (1.53)"."""
        return self.text(2) + ("" if self.error is None else f" ({self.error:.2f})")

    def trained_text(self, digits: int = 1) -> str:
        """The estimate without the collapsed seeds, "3.0 ± 2.6 (4 of 5 seeds)"; "" if none has."""
        if self.sound is None:
            return ""
        return f"{self.sound.text(digits)} ({self.sound.seeds} of {self.seeds} seeds)"


TRAINED_TITLE = "without collapsed seeds"
COLLAPSED_SEEDS = "A seed has collapsed if its value is below half of the best seed's."

Array = npt.NDArray[np.float64]
Verdict = Literal["better", "worse", "not decided"]

_LEVEL = 0.05
_DRAWS = 2000
_MOST_SEEDS = 100

VERDICTS = (
    "A verdict is better or worse if the difference is significant at 5% after Holm's correction "
    "for all comparisons of the list, and not decided otherwise. The 95% intervals are not "
    "corrected. Values are paired by seed where both sides have the same seeds. Where the file of "
    "results holds the hits of each query, seeds and images (with their captions) are resampled "
    "together; otherwise the interval is over seeds alone. Few seeds decide only differences that "
    "are large beside their spread over the seeds; one seed decides nothing. The effect size is "
    "the difference in units of the standard deviation over seeds."
)


@dataclass(frozen=True)
class Queries:
    """What each query adds to a value, by the image that the query belongs to.

    The value is `sum_p (sum_i sums[p, i]) / (sum_i counts[p, i])`: a sum of means over the queries
    of each part p, such as both directions of retrieval. `sums (P, I)` belongs to one run;
    `counts (P, I)`, the number of queries, is the same for all runs.
    """

    sums: Array
    counts: Array

    @classmethod
    def rsum_queries(cls, hits: Hits) -> "Queries":
        """What each query of a run adds to rsum, in both directions."""
        words = hits.t2i.split()
        sums = [list(map(int, hits.i2t)), [sum(map(int, word)) for word in words]]
        counts = [[1] * len(words), [len(word) for word in words]]
        return cls(100 * np.array(sums, float), np.array(counts, float))

    def less(self, other: "Queries") -> "Queries":
        """What each query adds to the difference of two runs on the same queries."""
        return replace(self, sums=self.sums - other.sums)


@dataclass(frozen=True)
class Difference:
    """The mean difference of two sides, paired by seed, and its uncertainty.

    `variance` is that of the mean (None: a single seed), and `seed_variance` the part that more
    seeds would reduce. `spread` is the standard deviation over the seeds within a side.
    """

    mean: float
    variance: float | None = None
    seed_variance: float = 0.0
    seeds: int = 1
    spread: float = 0.0

    @classmethod
    def of(
        cls,
        side: Mapping[int, float],
        other: Mapping[int, float],
        queries: tuple[Mapping[int, Queries], Mapping[int, Queries]] | None = None,
    ) -> "Difference":
        """The difference of two sides, each the values by seed, over the seeds that both have. With
        the `queries` of both sides the variance is that of `resampled` values."""
        seeds = [seed for seed in side if seed in other]
        both = [[values[seed] for seed in seeds] for values in (side, other)]
        mean = statistics.fmean(both[0]) - statistics.fmean(both[1])
        if len(seeds) < 2:
            return cls(mean)
        pairs = zip(*both, strict=True)
        seed_variance = statistics.variance([one - two for one, two in pairs]) / len(seeds)
        variance = seed_variance
        if queries is not None:
            runs = [[part[seed] for seed in seeds] for part in queries]
            draws = resampled(runs[0], runs[1])
            variance = max(variance, float(draws.var(ddof=1)))
        spread = math.sqrt(statistics.fmean(map(statistics.variance, both)))
        return cls(mean, variance, seed_variance, len(seeds), spread)

    @property
    def half_width(self) -> float | None:
        """Half the width of the 95% confidence interval; None for a single seed."""
        if self.variance is None:
            return None
        quantile = float(stdtrit(self._freedom, 1 - _LEVEL / 2))
        return quantile * math.sqrt(self.variance)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the 95% confidence interval; None for a single seed."""
        half_width = self.half_width
        return None if half_width is None else (self.mean - half_width, self.mean + half_width)

    @property
    def p(self) -> float:
        """The probability of so large a difference between equal sides; 1 for a single seed."""
        if not self.variance:
            return 0.0 if self.variance == 0.0 and self.mean else 1.0
        return 2 * float(stdtr(self._freedom, -abs(self.mean) / math.sqrt(self.variance)))

    @property
    def _freedom(self) -> float:
        """Satterthwaite's degrees of freedom; the variance over queries counts as known."""
        assert self.variance is not None
        share = self.seed_variance / self.variance if self.variance else 1.0
        return (self.seeds - 1) / share**2 if share else math.inf

    @property
    def effect(self) -> float | None:
        """Cohen's d: the mean in units of `spread`; None if the sides have no spread."""
        return self.mean / self.spread if self.spread else None

    def seeds_to_decide(self, comparisons: int = 1) -> int | None:
        """The least number of seeds, from 2 on, with which this mean and these spreads would be
        significant among so many comparisons; None if 100 seeds are not enough."""
        if self.variance is None:
            return None
        query_variance = self.variance - self.seed_variance
        for seeds in range(2, _MOST_SEEDS + 1):
            needed = self.seed_variance * self.seeds / seeds
            expected = Difference(self.mean, query_variance + needed, needed, seeds)
            if expected.p < _LEVEL / comparisons:
                return seeds
        return None

    def text(self, digits: int = 2, interval: str = "95% interval ") -> str:
        """The numbers, the ends after the words `interval`: "+2.86 (95% interval 1.90 to 3.82)"."""
        if self.interval is None:
            return f"{self.mean:+.{digits}f} (no interval)"
        low, high = self.interval
        return f"{self.mean:+.{digits}f} ({interval}{low:.{digits}f} to {high:.{digits}f})"


@lru_cache(maxsize=1)
def _drawn_images(images: int, draws: int) -> tuple[Array, Mapping[str, Any]]:
    """How often each image is in each draw `(images, draws)`, and the state of the random numbers
    thereafter. All comparisons on one gallery have the same draws."""
    rng = np.random.default_rng(0)
    weights = rng.multinomial(images, [1 / images] * images, draws).T.astype(float)
    return weights, rng.bit_generator.state


def resampled(side: Sequence[Queries], other: Sequence[Queries], draws: int = _DRAWS) -> Array:
    """The difference of two sides `(draws,)` in a hierarchical bootstrap: seeds, then images.

    A draw takes n - 1 of the n seeds, the same of both sides, because with n seeds the variance of
    few seeds would be too small by (n - 1) / n (Rao and Wu, 1988). A draw takes as many images as
    there are, with all their captions. All runs share the drawn images, because all runs rank the
    same images.
    """
    rng, counts, n = np.random.default_rng(0), side[0].counts, len(side)
    weights, rng.bit_generator.state = _drawn_images(counts.shape[1], draws)
    totals = counts @ weights
    shares = rng.multinomial(max(n - 1, 1), [1 / n] * n, draws).T / max(n - 1, 1)
    means = []
    for runs in (side, other):
        values = np.stack([((run.sums @ weights) / totals).sum(0) for run in runs])
        means.append((shares * values).sum(0))
    return means[0] - means[1]


def interval(
    values: Mapping[int, float], queries: Mapping[int, Queries]
) -> tuple[float, float] | None:
    """The 95% confidence interval of the mean of the `values` by seed; None for a single seed.

    The interval is over the seeds and, if the `queries` of all runs are known, over the images.
    """
    zero = {seed: Queries(0 * run.sums, run.counts) for seed, run in queries.items()}
    known = values.keys() == queries.keys()
    distance = Difference.of(values, dict.fromkeys(values, 0.0), (queries, zero) if known else None)
    return distance.interval


def verdicts(differences: Sequence[Difference]) -> list[Verdict]:
    """The verdict of each difference, with Holm's correction for all of them."""
    decided: list[Verdict] = ["not decided"] * len(differences)
    order = sorted(range(len(differences)), key=lambda number: differences[number].p)
    for rank, number in enumerate(order):
        difference = differences[number]
        if difference.p >= _LEVEL / (len(differences) - rank):
            break
        decided[number] = "better" if difference.mean > 0 else "worse"
    return decided


def best_value(values: Iterable[float | None], lower_is_better: bool = False) -> float | None:
    """The best of at least two values; None for fewer values."""
    present = [value for value in values if value is not None]
    if len(present) < 2:
        return None
    return min(present) if lower_is_better else max(present)
