"""Ablations in the report: means and spreads as by hand, the best marked, charts as they should."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from made_results import write_trained
from manymatch.reporting.sections.ablations import dot_charts, line_charts
from report_pages import pages_of

from manymatch.reporting import ablations
from manymatch.reporting.table import Table
from manymatch.results.experiments import Experiment

ALPHA = {"similarity.alpha": [1, 2, 4, 8]}
METHODS = {"preset": ["vsepp", "dive", "cora"]}


def ablation(reports: Path, over: dict[str, list[Any]], **change: Any) -> Experiment:
    return Experiment.read(write_trained(reports, "what", over, **change))


def test_a_single_seed_has_no_spread(tmp_path: Path) -> None:
    experiment = ablation(tmp_path, ALPHA, seeds=1)
    assert "±" not in ablations.to_markdown(experiment)
    assert "seed 0" in ablations.sizes(experiment)


def headings(table: Table) -> list[str]:
    return [column.heading for column in table.columns]


def test_columns_that_no_run_has_are_left_out_and_the_best_mean_is_marked(tmp_path: Path) -> None:
    plain, of_sets = (
        ablations.table(ablation(tmp_path, ALPHA, sets=sets)) for sets in (False, True)
    )
    assert headings(plain)[1:3] == ["rsum", "R@1 image → text"]
    assert "Log variance images" not in headings(plain)
    assert "Log variance images" in headings(of_sets)
    means = [row[1].value for row in of_sets.rows]
    assert [row[1].best for row in of_sets.rows] == [mean == max(means) for mean in means]
    assert not any(row[-1].best for row in of_sets.rows)  # less training is no achievement


def test_collapsed_sets_are_marked(tmp_path: Path) -> None:
    path = write_trained(tmp_path, "what", ALPHA, sets=True)
    value = json.loads(path.read_text())
    for run in value["points"][1]["runs"]:
        run["metrics"]["sets"]["texts"]["log_circular_variance"] = -7.1
    path.write_text(json.dumps(value))
    table = ablations.table(Experiment.read(path))
    marked = [
        (number, column.heading)
        for number, row in enumerate(table.rows)
        for column, cell in zip(table.columns, row, strict=True)
        if cell.badges == ("collapsed",)
    ]
    assert marked == [(1, "Log variance captions")]
    assert ablations.to_markdown(Experiment.read(path)).count("(collapsed)") == 1


def test_methods_are_ranked_and_settings_keep_their_order(tmp_path: Path) -> None:
    settings = ablations.table(ablation(tmp_path, ALPHA))
    assert headings(settings)[0] == "similarity.alpha"
    assert [row[0].text for row in settings.rows] == ["1", "2", "4", "8"]
    methods = ablations.table(ablation(tmp_path, METHODS))
    means = [row[1].value for row in methods.rows]
    assert headings(methods)[:3] == ["Method", "rsum", "95% interval"]
    assert means == sorted(means, reverse=True)
    assert "95% interval" not in headings(settings)
    for row in methods.rows:
        low, high = map(float, row[2].text.split(" to "))
        assert row[1].value is not None and low < row[1].value < high


def test_named_points_are_called_so(tmp_path: Path) -> None:
    path = write_trained(tmp_path, "what", {"a": [1, 2]}, keys=[])
    table = ablations.table(Experiment.read(path))
    assert headings(table)[0] == "Setting"
    assert [row[0].text for row in table.rows] == ["a=1", "a=2"]


def test_markdown_rows_have_equally_many_cells(tmp_path: Path) -> None:
    over = {"similarity.name": ["mil", "a|b"], "weight": [0.0, None]}
    text = ablations.to_markdown(ablation(tmp_path, over, sets=True))
    lines = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 6 and len({line.count("|") for line in lines}) == 1
    assert lines[0].startswith("| similarity.name | weight | rsum |")
    assert lines[3].startswith("| mil | null |")
    assert "mean ± standard deviation of seeds 0, 1, 2" in text


def test_lines_are_drawn_over_numbers(tmp_path: Path) -> None:
    charts = line_charts(ablation(tmp_path, ALPHA))
    assert [chart.title for chart in charts] == [
        "rsum",
        "mAP@R, image → text",
        "mAP@R, text → image",
    ]
    (line,) = charts[0].lines
    assert [tick.label for tick in charts[0].x_ticks] == ["1", "2", "4", "8"]
    assert [x for _, x, _ in line.dots] == [125, 375, 625, 875]
    assert charts[0].unit == "similarity.alpha" and line.name == "dive"
    for chart in charts:
        assert all(0 <= number <= 1000 for number in numbers(chart.lines[0].path))
        assert all(0 <= number <= 1000 for number in numbers(chart.lines[0].ranges))
    assert line.ranges.count("M") == 4
    single = line_charts(ablation(tmp_path, ALPHA, seeds=1))
    assert single[0].lines[0].ranges == ""


def numbers(path: str) -> list[float]:
    return [float(text) for text in re.findall(r"[-\d.]+", path)]


def test_a_line_goes_through_the_means_where_the_ticks_say(tmp_path: Path) -> None:
    rsums = {"a=10": [300.0], "a=2": [100.0], "a=5": [200.0]}
    chart = line_charts(ablation(tmp_path, {"a": [10, 2, 5]}, rsums=rsums))[0]
    assert [tick.label for tick in chart.x_ticks] == ["2", "5", "10"]
    assert [y for _, _, y in chart.lines[0].dots] == [1000, 500, 0]
    assert chart.lines[0].summary == "best 300.0 at 10"


def test_another_key_makes_a_line_each(tmp_path: Path) -> None:
    over = {"attribute_layers": [1, 2], "object_layers": [1, 2, 3]}
    chart = line_charts(ablation(tmp_path, over))[0]
    assert chart.unit == "object_layers"
    assert [line.name for line in chart.lines] == ["attribute_layers=1", "attribute_layers=2"]
    assert [len(line.dots) for line in chart.lines] == [3, 3]


@pytest.mark.parametrize(
    "over",
    [METHODS, {"weight": [0.0, 0.1]}, {"alpha": [None, 1, 2]}, {"on": [True, False]}],
    ids=["words", "too few", "not all numbers", "yes and no"],
)
def test_anything_else_is_rows_of_dots(tmp_path: Path, over: dict[str, list[Any]]) -> None:
    experiment = ablation(tmp_path, over)
    assert line_charts(experiment) == []
    charts = dot_charts(experiment)
    assert len(charts) == 3
    for chart in charts:
        assert len(chart.dots) == len(experiment.points)
        assert all(0 <= dot.low <= dot.at <= dot.high <= 100 for dot in chart.dots)


def test_the_report_shows_ablations_and_carries_methods_to_the_leaderboard(reports: Path) -> None:
    write_trained(reports, "scenes-study", METHODS)
    write_trained(reports, "dive-alpha", ALPHA, about="<b>How</b> sharp?", sets=True)
    write_trained(reports, "alone", ALPHA, dataset="elsewhere")
    pages = pages_of(reports)
    page = pages["scenes-experiments"]
    assert "&lt;b&gt;How&lt;/b&gt; sharp?" in page
    shown = page[page.index('id="experiment-dive-alpha"') :]
    assert shown.count('aria-label="Best pair of similarity.alpha=') == len(
        ALPHA["similarity.alpha"]
    )
    assert 'id="experiment-alone"' in pages["elsewhere-experiments"]
    assert 'id="scenes-methods"' in pages["index"] and 'id="methods"' in pages["scenes-results"]
    board = (reports / "leaderboard.md").read_text()
    assert "**scenes-study** (test: 300 images" in board and "dive-alpha" not in board
    assert "% scenes-study: test: 300 images" in (reports / "leaderboard.tex").read_text()


def test_ensembles_and_re_ranked_results_are_marked_wherever_they_are_shown(reports: Path) -> None:
    """Two seeds of cora, both together and re-ranked, beside a preset with a similar name."""
    metrics, provenance = reports / "results" / "scenes", reports / "provenance" / "scenes"
    record = json.loads((provenance / "cora.json").read_text())
    members = [{**record, "preset": "cora"}, {**record, "preset": "cora-1", "seed": 1}]
    together = {"seed": "0+1", "members": members}
    for preset, change in {
        "cora-cora-1": {},
        "cora+cora-1": together,
        "cora+rerank": {"rerank_beta": 0.65},
        "cora+cora-1+rerank": {**together, "rerank_beta": 0.6},
    }.items():
        (metrics / f"{preset}.json").write_text((metrics / "cora.json").read_text())
        value = {**record, **change, "preset": preset}
        (provenance / f"{preset}.json").write_text(json.dumps(value))
    (reports / "curves" / "scenes" / "cora-cora-1").symlink_to("cora")
    page = pages_of(reports)["scenes-results"]
    assert "ranked by the mean of several models" in page
    assert "cora (seed 0), cora-1 (seed 1)" in page
    assert "Re-ranking, beta" in page and ">0.65</td>" in page
    assert "training curves of this run are not on this machine" not in page
    ids = re.findall(r'id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    board = (reports / "leaderboard.md").read_text()
    assert "| cora+cora-1 | small-scale, ensemble |" in board
    assert "| cora+rerank | small-scale, re-ranked |" in board
    assert "| cora+cora-1+rerank | small-scale, re-ranked ensemble |" in board
    assert "*re-ranked*: ranked by the scores of captions mixed" in board
    assert "*re-ranked ensemble*: re-ranked by the means of several models" in board
    with (reports / "leaderboard.csv").open(newline="") as stream:
        (row,) = [row for row in csv.DictReader(stream) if row["preset"] == "cora+cora-1"]
    assert row["seed"] == "0+1"
