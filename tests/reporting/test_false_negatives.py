"""What false negatives cost: the share of a gap by Fieller's formula, and the words."""

import numpy as np
import pytest
from made_results import write_experiment
from scipy import stats

from manymatch.reporting.estimates import Queries
from manymatch.reporting.sections import false_negatives
from manymatch.reporting.table import Folded, Prose
from manymatch.results.all_results import AllResults
from manymatch.results.experiments import Experiment


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_the_share_has_the_interval_of_fiellers_formula(seeds):
    rng = np.random.default_rng(seeds)
    for _ in range(20):
        part, whole = rng.normal(1, 0.3, seeds), rng.normal(3, 0.3, seeds)
        ends = false_negatives.share_interval(list(part), list(whole))
        quantile = stats.t.ppf(0.975, seeds - 1)
        (a, covariance), (_, b) = np.cov(part, whole) / seeds * quantile**2
        x, y = part.mean(), whole.mean()
        if y**2 <= b:  # the gap itself may be 0
            assert ends is None
            continue
        # The roots of (x - s y)^2 = a - 2 s covariance + s^2 b.
        roots = np.roots([y**2 - b, -2 * (x * y - covariance), x**2 - a])
        assert ends == pytest.approx(sorted(roots.real), abs=2e-3)


def test_queries_widen_the_interval_of_a_share():
    rng = np.random.default_rng(0)
    counts = np.ones((1, 50))
    runs = [
        [Queries(rng.normal(mean, 4, (1, 50)), counts) for _ in range(3)] for mean in (2.0, 8.0)
    ]
    part, whole = ([float(run.sums.mean()) for run in side] for side in runs)
    alone = false_negatives.share_interval(part, whole)
    both = false_negatives.share_interval(part, whole, runs)
    assert both[0] <= alone[0] < alone[1] <= both[1] and both != alone


def test_the_section_says_what_one_vector_loses_and_what_a_method_closes(tmp_path):
    rsums = {
        "vse_infinity, training.negatives=batch": [300.0, 301.0, 302.0],
        "vse_infinity, training.negatives=oracle": [320.0, 320.9, 322.1],
        "dive, training.negatives=batch": [310.0, 311.0, 312.0],
        "dive, training.negatives=oracle": [310.0, 312.0, 311.0],
    }
    over = {"preset": ["vse_infinity", "dive"], "training.negatives": ["batch", "oracle"]}
    write_experiment(tmp_path, "oracle", over, rsums=rsums)
    write_experiment(tmp_path, "other", {"preset": ["vse_infinity", "dive"]})
    results = AllResults([], {Experiment: Experiment.read_all(tmp_path)})
    blocks = false_negatives.section(results)
    (words,) = [block for block in blocks if isinstance(block, Prose)]
    text = words.paragraphs[0][0].text
    assert "2 methods change on average by" in text and "; +10.0 (95%" in text
    assert text.endswith("vse_infinity +20.0 in rsum.")
    folded = [block.blocks[0] for block in blocks if isinstance(block, Folded)]
    (table,) = [one for one in folded if one.title == "rsum, by negatives"]
    rows = {row[0].text: [cell.plain for cell in row[1:]] for row in table.rows}
    assert rows["dive"][3] == "not decided" and rows["vse_infinity"][3] == "better"
    assert rows["dive"][4].startswith("50% (") and rows["vse_infinity"][4] == "-"
