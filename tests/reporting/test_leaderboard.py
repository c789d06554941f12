"""The leaderboard's numbers, its best ones, and the table in a README."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from manymatch.reporting import leaderboard
from manymatch.reporting.report import report
from manymatch.results.runs import read_runs
from manymatch.system.errors import DataError


def test_csv_holds_every_number_as_it_is_in_the_metrics(reports: Path) -> None:
    report(reports)
    with (reports / "leaderboard.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["dataset"], row["preset"]) for row in rows] == [
        ("flickr8k", "cora"),
        ("flickr8k", "vsepp"),
        ("scenes", "cora"),
        ("scenes", "vsepp"),
    ]
    truth = json.loads((reports / "results/scenes/vsepp.json").read_text())
    assert float(rows[3]["rsum"]) == truth["rsum"]
    assert float(rows[3]["t2i.meanr"]) == truth["t2i"]["meanr"]
    assert float(rows[3]["multi.i2t.r_precision"]) == truth["multi"]["i2t"]["r_precision"]
    assert rows[0]["multi.i2t.r_precision"] == ""


def test_metrics_beyond_the_known_ones_reach_the_csv(reports: Path) -> None:
    path = reports / "results/scenes/cora.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pmrp": {"i2t": 12.5}}))
    text = leaderboard.to_csv(read_runs(reports))
    assert "pmrp.i2t" in text.splitlines()[0]
    assert "12.5" in text


def test_best_is_the_highest_recall_and_the_lowest_rank(reports: Path) -> None:
    runs = [run for run in read_runs(reports) if run.dataset == "scenes"]
    board = leaderboard.table(runs)
    best = [[cell.best for cell in row] for row in board.cells]
    assert best == [[True] * len(board.columns), [False] * len(board.columns)]


def test_equal_values_are_both_best_and_a_single_run_has_none(reports: Path) -> None:
    run = read_runs(reports)[0]
    twice = leaderboard.table([run, run])
    assert all(cell.best for row in twice.cells for cell in row)
    assert not any(cell.best for row in leaderboard.table([run]).cells for cell in row)


def test_columns_without_a_number_are_left_out(reports: Path) -> None:
    groups = {
        name: [group for group, _ in leaderboard.table(runs).groups]
        for name, runs in leaderboard.by_dataset(read_runs(reports))
    }
    assert groups["flickr8k"] == ["Both ways", "Image → text", "Text → image"]
    assert "Multi-match, image → text" in groups["scenes"]


def test_markdown_is_a_table_with_equally_many_cells_in_each_row(reports: Path) -> None:
    text = leaderboard.to_markdown(read_runs(reports))
    scenes = text.partition("**scenes**")[2].strip().splitlines()
    table = [line for line in scenes if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert "**55.0** / **79.5** / **88.0**" in table[2]
    assert "| 326.5 |" in table[3]
    assert "*small-scale*: our own data" in text


def test_readme_gets_the_table_between_its_markers_and_again(tmp_path: Path) -> None:
    readme, board = tmp_path / "README.md", tmp_path / "leaderboard.md"
    readme.write_text("# Title\n\n<!-- results -->\nold\n<!-- /results -->\n\nThe end.\n")
    board.write_text("| new |\n")
    for _ in range(2):
        leaderboard.update_readme(readme, board)
        assert readme.read_text() == (
            "# Title\n\n<!-- results -->\n\n| new |\n\n<!-- /results -->\n\nThe end.\n"
        )


@pytest.mark.parametrize(
    "text",
    [
        "no marker\n",
        "<!-- results -->\n",
        "<!-- /results -->\n<!-- results -->\n",
        "<!-- results --><!-- /results --><!-- results --><!-- /results -->",
    ],
)
def test_readme_without_one_pair_of_markers_is_refused(tmp_path: Path, text: str) -> None:
    readme, board = tmp_path / "README.md", tmp_path / "leaderboard.md"
    readme.write_text(text)
    board.write_text("| new |\n")
    with pytest.raises(DataError, match="expected one line <!-- results -->"):
        leaderboard.update_readme(readme, board)
    assert readme.read_text() == text


def test_readme_without_a_leaderboard_says_what_to_run(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("<!-- results --><!-- /results -->")
    with pytest.raises(DataError, match="run 'manymatch report'"):
        leaderboard.update_readme(readme, tmp_path / "leaderboard.md")
