"""Synthetic experiments in the report: means and spreads as by hand, and what is chance."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_experiments import write_experiment

from manymatch.reporting import synthetic
from manymatch.reporting.estimates import Estimate
from manymatch.results.synthetic import SyntheticExperiment

AHEAD = {"contrastive": [80.0, 82.0, 87.0], "SwAMP": [86.0, 88.5, 92.5]}
ALIKE = {"contrastive": [80.0, 82.0, 87.0], "SwAMP": [81.0, 81.0, 88.0]}


def experiment(reports: Path, r1: dict[str, list[float]], **change: object) -> SyntheticExperiment:
    return SyntheticExperiment.read(write_experiment(reports, "what", r1, **change))


def test_mean_spread_and_error_are_those_of_the_seeds() -> None:
    estimate = Estimate.of([1.0, 2.0, 6.0])
    assert (estimate.mean, estimate.deviation) == (3.0, pytest.approx(7**0.5))
    assert estimate.error == pytest.approx((7 / 3) ** 0.5)
    assert estimate.text_with_error() == "3.00 ± 2.65 (1.53)"
    assert Estimate.of([1.5]).text_with_error() == "1.50"


def test_the_table_stands_beside_what_is_published(tmp_path: Path) -> None:
    table = synthetic.table(experiment(tmp_path, AHEAD))
    heads = [column.title for column in table.columns]
    assert heads[:3] == ["Setting", "R@1, pair", "published, pair"]
    contrastive, swamp = (
        dict(zip(heads, (cell.plain for cell in row), strict=True)) for row in table.rows
    )
    assert contrastive["R@1, pair"] == "83.00 ± 3.61 (2.08)"
    assert (contrastive["published, pair"], contrastive["Newton steps"]) == ("-", "-")
    assert (swamp["published, pair"], swamp["published, class"]) == ("90.80", "95.70")
    assert (swamp["Error of shares"], swamp["Newton steps"]) == ("14", "20 to 22")
    assert (swamp["Med-R, pair"], swamp["Med-R, class"]) == ("1 to 3", "1")
    assert swamp["Seconds"] == "100 (80)"


def test_columns_without_anything_are_left_out(tmp_path: Path) -> None:
    result = experiment(tmp_path, {"a": [1.0], "b": [2.0]}, published={}, baseline=None)
    assert [column.title for column in synthetic.table(result).columns] == [
        "Setting",
        "R@1, pair",
        "Med-R, pair",
        "R@1, class",
        "Med-R, class",
        "Seconds",
    ]
    assert synthetic.view(result).differences == []
    assert "ublished" not in synthetic.note(result)


def test_ahead_is_judged_seed_by_seed(tmp_path: Path) -> None:
    """Seeds differ by more than the two points do; the differences 6, 6.5, 5.5 hardly at all."""
    pair, classes = synthetic.view(experiment(tmp_path, AHEAD)).differences
    assert pair == (
        "SwAMP against contrastive, pair R@1: +6.00 (95% interval 4.76 to 7.24): better."
    )
    assert classes == (
        "SwAMP against contrastive, class R@1: +3.00 (95% interval 2.38 to 3.62): better."
    )


@pytest.mark.parametrize(
    ("r1", "message"),
    [
        (ALIKE, "): not decided."),
        (dict(zip(AHEAD, reversed(AHEAD.values()), strict=True)), "): worse."),
        ({"contrastive": [80.0], "SwAMP": [99.0]}, "(no interval): not decided."),
    ],
)
def test_what_may_be_chance_is_not_called_better(
    r1: dict[str, list[float]], message: str, tmp_path: Path
) -> None:
    sentences = synthetic.view(experiment(tmp_path, r1)).differences
    assert any(sentence.endswith(message) for sentence in sentences)
    assert not any(sentence.endswith("): better.") for sentence in sentences)


def test_experiments_of_a_paper_come_first(tmp_path: Path) -> None:
    for name, published in {"a": {}, "z": {"SwAMP": {"pair": 1.0}}}.items():
        write_experiment(tmp_path, name, AHEAD, published=published)
    assert [item.name for item in SyntheticExperiment.read_all(tmp_path)] == ["z", "a"]
