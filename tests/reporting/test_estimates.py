"""Intervals over seeds and queries, Holm's correction and the seeds that decide, against loops."""

import math

import numpy as np
import pytest
from scipy import stats

from manymatch.reporting.estimates import Difference, Estimate, interval, resampled, verdicts
from manymatch.reporting.sections.claims import Quantity
from manymatch.results.experiments import ExperimentRun

RSUM = Quantity("rsum", ("rsum",))


def made(runs, images, level=1.5, seed=0):
    rng = np.random.default_rng(seed)

    def digit():
        return int(np.clip(round(rng.normal(level, 1)), 0, 3))

    return [
        [(digit(), [digit() for _ in range(1 + image % 3)]) for image in range(images)]
        for _ in range(runs)
    ]


def rsum(run):
    """As a loop over the queries."""
    captions = [digit for _, digits in run for digit in digits]
    return 100 * sum(digit for digit, _ in run) / len(run) + 100 * sum(captions) / len(captions)


def queries(run):
    i2t = "".join(str(digit) for digit, _ in run)
    t2i = " ".join("".join(map(str, digits)) for _, digits in run)
    stored = {"seed": 0, "metrics": {"rsum": rsum(run)}, "hits": {"i2t": i2t, "t2i": t2i}}
    of_run = RSUM.queries_of(ExperimentRun.model_validate(stored))
    assert of_run is not None
    return of_run


def difference(side, other):
    values = [dict(enumerate(map(rsum, runs))) for runs in (side, other)]
    by_seed = [dict(enumerate(map(queries, runs))) for runs in (side, other)]
    return Difference.of(values[0], values[1], (by_seed[0], by_seed[1]))


def test_a_draw_is_that_of_a_loop_over_seeds_images_and_captions():
    side, other = made(3, 12), made(3, 12, seed=1)
    draws = 25
    drawn = resampled([*map(queries, side)], [*map(queries, other)], draws)
    rng = np.random.default_rng(0)
    images = rng.multinomial(12, [1 / 12] * 12, draws)
    seeds = rng.multinomial(2, [1 / 3] * 3, draws)
    for number in range(draws):
        means = []
        for runs in (side, other):
            values = []
            for run, count in zip(runs, seeds[number], strict=True):
                sample = [run[i] for i in range(12) for _ in range(images[number][i])]
                values += [rsum(sample)] * count
            means.append(sum(values) / len(values))
        assert drawn[number] == pytest.approx(means[0] - means[1])


def test_the_variance_of_seeds_is_not_too_small_though_they_are_few():
    """Runs whose queries are all alike differ by the seed alone."""
    side = [[(digit, [digit])] * 20 for digit in (1, 2, 3)]
    other = [[(1, [1])] * 20] * 3
    actual = difference(side, other)
    assert actual.variance == pytest.approx(np.var([200, 400, 600], ddof=1) / 3, rel=0.1)
    low, high = stats.ttest_rel([200, 400, 600], [200] * 3).confidence_interval(0.95)
    assert actual.half_width == pytest.approx((high - low) / 2, rel=0.2)


def test_few_images_widen_the_intervals_of_means_and_differences_and_queries_are_paired():
    side, other = made(4, 40, 1.6), made(4, 40, 1.5, seed=1)
    values = [dict(enumerate(map(rsum, runs))) for runs in (side, other)]
    alone, both = Difference.of(values[0], values[1]), difference(side, other)
    assert both.mean == alone.mean
    assert both.variance > alone.variance == both.seed_variance
    same = difference(side, side)
    assert (same.mean, same.variance, same.p) == (0.0, 0.0, 1.0)
    low, high = interval(values[0], {})
    of_seeds = stats.ttest_1samp([*values[0].values()], 0).confidence_interval()
    assert (low, high) == pytest.approx(of_seeds)
    ends = interval(values[0], dict(enumerate(map(queries, side))))
    assert ends[0] < low < high < ends[1] and sum(ends) == pytest.approx(low + high)
    assert interval({0: 1.0}, {}) is None


def test_holm_s_correction_is_that_of_a_loop():
    rng = np.random.default_rng(1)
    for _ in range(50):
        differences = [Difference(float(mean), 1.0, 1.0, 5) for mean in rng.normal(0, 4, 6)]
        expected = ["not decided"] * 6
        left = dict(enumerate(differences))
        while left:
            number = min(left, key=lambda number: left[number].p)
            if left[number].p >= 0.05 / len(left):
                break
            expected[number] = "better" if left.pop(number).mean > 0 else "worse"
        assert verdicts(differences) == expected


def test_the_seeds_that_decide_are_those_of_a_loop():
    values = {0: 3.0, 1: -1.0, 2: 4.0}
    actual = Difference.of(values, dict.fromkeys(values, 0.0))
    deviation, mean = float(np.std([3.0, -1.0, 4.0], ddof=1)), 2.0
    expected = next(
        n
        for n in range(2, 100)
        if mean / (deviation / math.sqrt(n)) > stats.t.ppf(1 - 0.05 / 5 / 2, n - 1)
    )
    assert actual.seeds_to_decide(comparisons=5) == expected
    assert actual.effect == pytest.approx(mean / (deviation / math.sqrt(2)))
    hopeless = Difference(1.0, 4.0, 0.5, 3, 1.0)  # the queries alone leave it open
    assert hopeless.seeds_to_decide() is None
    assert Difference.of({0: 1.0}, {0: 0.0}).seeds_to_decide() is None


def test_mean_spread_and_error_are_those_of_the_seeds():
    estimate = Estimate.of([1.0, 2.0, 6.0])
    assert (estimate.mean, estimate.deviation) == (3.0, pytest.approx(7**0.5))
    assert estimate.error == pytest.approx((7 / 3) ** 0.5)
    assert estimate.text_with_error() == "3.00 ± 2.65 (1.53)"
    assert Estimate.of([1.5]).text_with_error() == "1.50"


def test_a_seed_below_half_of_the_best_has_collapsed():
    estimate = Estimate.score_estimate([86.0, 2.25, 88.0])
    assert estimate.text() == "58.8 ± 48.9"
    assert estimate.trained_text() == "87.0 ± 1.4 (2 of 3 seeds)"
    assert Estimate.score_estimate([3.0, 90.0, 2.0]).trained_text(0) == "90 (1 of 3 seeds)"
    for sound in ([45.0, 90.0], [90.0], [-1.6, -9.0], [0.0, 0.0]):
        assert Estimate.score_estimate(sound) == Estimate.of(sound)
        assert Estimate.score_estimate(sound).trained_text() == ""
