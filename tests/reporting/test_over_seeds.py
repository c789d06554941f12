"""Synthetic pairs and sketches in the report: means and spreads as by hand, what is chance, and
the papers' rows beside ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_results import write_experiment, write_trained, written
from report_pages import texts_of

from manymatch.reporting import ablations, over_seeds, page
from manymatch.reporting.blocks import Block, Bullets, Note
from manymatch.reporting.estimates import COLLAPSED_SEEDS, TRAINED_TITLE, Estimate
from manymatch.reporting.table import Table
from manymatch.results.all_results import AllResults
from manymatch.results.experiments import Experiment
from manymatch.results.over_seeds import SketchExperiment, SyntheticExperiment

AHEAD = {"contrastive": [80.0, 82.0, 87.0], "SwAMP": [86.0, 88.5, 92.5]}
ALIKE = {"contrastive": [80.0, 82.0, 87.0], "SwAMP": [81.0, 81.0, 88.0]}


def experiment(reports: Path, r1: dict[str, list[float]], **change: object) -> SyntheticExperiment:
    return SyntheticExperiment.read(write_experiment(reports, "what", r1, **change))


def sentences(blocks: list[Block]) -> Sequence[str]:
    """How the points differ from the baseline."""
    assert isinstance(blocks[-1], Bullets)
    return blocks[-1].items


def test_mean_spread_and_error_are_those_of_the_seeds() -> None:
    estimate = Estimate.of([1.0, 2.0, 6.0])
    assert (estimate.mean, estimate.deviation) == (3.0, pytest.approx(7**0.5))
    assert estimate.error == pytest.approx((7 / 3) ** 0.5)
    assert estimate.text_with_error() == "3.00 ± 2.65 (1.53)"
    assert Estimate.of([1.5]).text_with_error() == "1.50"


def test_a_seed_below_half_of_the_best_has_collapsed() -> None:
    estimate = Estimate.score_estimate([86.0, 2.25, 88.0])
    assert estimate.text() == "58.8 ± 48.9"
    assert estimate.trained_text() == "87.0 ± 1.4 (2 of 3 seeds)"
    assert Estimate.score_estimate([3.0, 90.0, 2.0]).trained_text(0) == "90 (1 of 3 seeds)"
    for sound in ([45.0, 90.0], [90.0], [-1.6, -9.0], [0.0, 0.0]):
        assert Estimate.score_estimate(sound) == Estimate.of(sound)
        assert Estimate.score_estimate(sound).trained_text() == ""


def test_no_table_averages_a_collapsed_seed_in_silence(tmp_path: Path) -> None:
    r1 = {"contrastive": [87.0, 2.0], "SwAMP": [88.0, 87.0]}
    blocks = over_seeds.synthetic(experiment(tmp_path, r1))
    sketch = json.loads(write_sketches(tmp_path).read_text())
    sketch["points"][0]["runs"][1]["map"] = 1.0
    written(tmp_path / "sketches" / "made.json", sketch)
    blocks += over_seeds.sketches(SketchExperiment.read_all(tmp_path)[0])
    rsums = {"a": [300.0, 90.0], "b": [200.0, 210.0]}
    ablation = Experiment.read(write_trained(tmp_path, "what", {"preset": ["a", "b"]}, rsums=rsums))
    blocks += ablations.blocks(ablation)
    said = []
    for table in (block for block in blocks if isinstance(block, Table)):
        titles = [column.title for column in table.columns]
        at = next(i for i, title in enumerate(titles) if TRAINED_TITLE in title)
        said += [row[at] for row in texts_of(table) if row[at] != "-"]
    assert said == ["87.00 (1 of 2 seeds)", "30.00 (1 of 2 seeds)", "300.0 (1 of 2 seeds)"]
    assert sum(COLLAPSED_SEEDS in block.text for block in blocks if isinstance(block, Note)) == 3
    assert COLLAPSED_SEEDS in ablations.to_markdown(ablation)


def test_the_table_stands_beside_what_is_published(tmp_path: Path) -> None:
    table = over_seeds.synthetic_table(experiment(tmp_path, AHEAD))
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
    assert [column.title for column in over_seeds.synthetic_table(result).columns] == [
        "Setting",
        "R@1, pair",
        "Med-R, pair",
        "R@1, class",
        "Med-R, class",
        "Seconds",
    ]
    assert sentences(over_seeds.synthetic(result)) == []
    *_, note, _ = over_seeds.synthetic(result)
    assert isinstance(note, Note) and "ublished" not in note.text


def test_ahead_is_judged_seed_by_seed(tmp_path: Path) -> None:
    """Seeds differ by more than the two points do; the differences 6, 6.5, 5.5 hardly at all."""
    pair, classes = sentences(over_seeds.synthetic(experiment(tmp_path, AHEAD)))
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
    said = sentences(over_seeds.synthetic(experiment(tmp_path, r1)))
    assert any(sentence.endswith(message) for sentence in said)
    assert not any(sentence.endswith("): better.") for sentence in said)


def test_experiments_of_a_paper_come_first(tmp_path: Path) -> None:
    for name, published in {"a": {}, "z": {"SwAMP": {"pair": 1.0}}}.items():
        write_experiment(tmp_path, name, AHEAD, published=published)
    assert [item.name for item in SyntheticExperiment.read_all(tmp_path)] == ["z", "a"]


def write_sketches(reports: Path, name: str = "made", **change: Any) -> Path:
    """Two points of two seeds each."""
    points = [
        {"label": label, "settings": {}, "runs": [one_run(seed, value) for seed in (0, 1)]}
        for label, value in (("triplet", 30.0), ("SwAMP", 36.0))
    ]
    record = {
        "name": name,
        "about": "What it is about.",
        "dataset": "sketchy-extended",
        "baseline": "triplet",
        "seeds": [0, 1],
        "points": points,
    }
    return written(reports / "sketches" / f"{name}.json", record | change)


def one_run(seed: int, value: float) -> dict[str, Any]:
    values = {"map": value + seed, "map_at_200": value + 10, "map_at_200_r": 9.0, "p_at_200": 8.0}
    return {"seed": seed, **values, "validation": 50.0, "epoch": 3, "seconds": 7.0}


def test_ours_come_first_and_published_rows_say_so(tmp_path: Path) -> None:
    table = over_seeds.sketches_table(SketchExperiment.read(write_sketches(tmp_path)))
    heads = [column.title for column in table.columns]
    assert heads == ["Method", "From", "mAP", "mAP@200", "P@200", "Seconds"]
    ours, _, *theirs = texts_of(table)
    assert ours[:3] == ["triplet", "run here", "30.50 ± 0.71 (0.50)"]
    published = {row[0]: row[1:] for row in theirs}
    position = "published: SwAMP, table 3"
    assert published["SwAMP"] == [position, "40.32", "51.94", "40.81", "-"]
    assert published["ZSIH"] == [position, "25.4", "-", "-", "-"]


def test_another_data_set_has_no_published_rows(tmp_path: Path) -> None:
    result = SketchExperiment.read(write_sketches(tmp_path, dataset="made up"))
    assert [row[1] for row in texts_of(over_seeds.sketches_table(result))] == [
        "run here",
        "run here",
    ]


def test_every_metric_is_compared_seed_by_seed(tmp_path: Path) -> None:
    message = sentences(over_seeds.sketches(SketchExperiment.read(write_sketches(tmp_path))))
    assert message[0].startswith(
        "SwAMP against triplet, mAP: +6.00 (95% interval 6.00 to 6.00): better"
    )
    assert "P@200: +0.00" in message[2] and "not decided" in message[2]
    without = SketchExperiment.read(write_sketches(tmp_path, baseline=None))
    assert sentences(over_seeds.sketches(without)) == []


def test_the_page_has_a_section_for_them(tmp_path: Path) -> None:
    write_sketches(tmp_path, about="<b>what</b>")
    pages = page.render(AllResults(runs=[], sketches=SketchExperiment.read_all(tmp_path)))
    assert list(pages) == ["index.html", "pages/experiments.html"]
    shown = pages["pages/experiments.html"]
    assert 'id="sketches"' in shown and "&lt;b&gt;what&lt;/b&gt;" in shown
    assert 'id="synthetic"' not in shown
