"""The leaderboard: its numbers, its best values, its files, and the pages that show it."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from manymatch.reporting import leaderboard
from manymatch.reporting.readme import update_pages
from manymatch.reporting.report import report
from manymatch.reporting.table import Table
from manymatch.results.runs import Run, read_runs
from manymatch.util.errors import DataError


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


def board_of(runs: list[Run]) -> Table:
    (table,) = leaderboard.tables(runs)
    return table


def test_best_is_the_highest_recall_and_the_lowest_rank(reports: Path) -> None:
    board = board_of([run for run in read_runs(reports) if run.dataset == "scenes"])
    best = [[cell.best for cell in row[2:]] for row in board.rows]
    numbers = len(board.columns) - 2
    assert best == [[True] * numbers, [False] * numbers]


def test_results_on_another_gallery_have_a_table_of_their_own(reports: Path) -> None:
    run, second = read_runs(reports)[:2]
    other = replace(second, provenance=second.provenance.model_copy(update={"images": 5}))
    assert [len(table.rows) for table in leaderboard.tables([run, other, run])] == [2, 1]
    first, last = leaderboard.to_latex([run, other]).split("\n\n")
    assert first.startswith("% flickr8k: test: 300 images, 1,500 captions\n")
    assert last.startswith("% flickr8k: test: 5 images, 1,500 captions\n")


def test_equal_values_are_both_best_and_a_single_run_has_none(reports: Path) -> None:
    run = read_runs(reports)[0]
    assert all(cell.best for row in board_of([run, run]).rows for cell in row[2:])
    assert not any(cell.best for row in board_of([run]).rows for cell in row)


def test_columns_without_a_number_are_left_out(reports: Path) -> None:
    groups = {
        name: [group for group, _ in board_of(runs).groups if group]
        for name, runs in leaderboard.group_datasets(read_runs(reports))
    }
    assert groups["flickr8k"] == ["Both ways", "Image → text", "Text → image"]
    assert "Multi-match, image → text" in groups["scenes"]


def test_latex_escapes_names_and_marks_the_best(reports: Path) -> None:
    run, other = read_runs(reports)[:2]
    named = replace(run, provenance=run.provenance.model_copy(update={"preset": "a_b & 100%"}))
    text = leaderboard.to_latex([named, other])
    assert r"a\_b \& 100\% & small-scale & " in text
    assert r"\textbf{55.0} / \textbf{79.5} / \textbf{88.0}" in text
    assert text.count(r"\begin{tabular}{llrrrr}") == text.count(r"\end{tabular}") == 1
    cells = {line.count(" & ") for line in text.splitlines() if line.endswith(r"\\")}
    assert len(cells) == 1


def test_markdown_is_a_table_with_equally_many_cells_in_each_row(reports: Path) -> None:
    text = leaderboard.to_markdown(read_runs(reports))
    scenes = text.partition("**scenes**")[2].strip().splitlines()
    table = [line for line in scenes if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1
    assert "**55.0** / **79.5** / **88.0**" in table[2]
    assert "| 326.5 |" in table[3]
    assert "*small-scale*: our own data" in text


PAGE = "# Title\n\n<!-- results -->\nold\n<!-- /results -->\n\nThe end.\n"
TABLE = """**scenes-study** (test: 300 images). All methods.

| Method |
| --- |
| dive |

R@1 is in percent."""
BOARD = f"**scenes** (test)\n\n| cora |\n\n{TABLE}\n\n**scenes**: claims?\n\n- None.\n"


def write(folder: Path, page: str = PAGE, board: str = BOARD) -> tuple[Path, Path, Path]:
    paths = folder / "README.md", folder / "results.md", folder / "leaderboard.md"
    for path, text in zip(paths, (page, PAGE, board), strict=True):
        path.write_text(text)
    return paths


def test_both_pages_get_their_part_between_the_markers_and_again(tmp_path: Path) -> None:
    readme, results, board = write(tmp_path)
    for _ in range(2):
        update_pages(readme, results, board)
        for path, block in ((readme, TABLE), (results, BOARD.strip())):
            expected = f"# Title\n\n<!-- results -->\n\n{block}\n\n<!-- /results -->\n\nThe end.\n"
            assert path.read_text() == expected


def test_a_table_without_an_explaining_line_ends_before_the_next_caption(tmp_path: Path) -> None:
    readme, results, board = write(tmp_path, board=BOARD.replace("R@1 is in percent.\n\n", ""))
    update_pages(readme, results, board)
    assert "claims?" not in readme.read_text() and "| dive |" in readme.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "no marker\n",
        "<!-- results -->\n",
        "<!-- /results -->\n<!-- results -->\n",
        "<!-- results --><!-- /results --><!-- results --><!-- /results -->",
    ],
)
def test_a_page_without_one_pair_of_markers_is_refused(tmp_path: Path, text: str) -> None:
    readme, results, board = write(tmp_path, page=text)
    with pytest.raises(DataError, match="expected one line <!-- results -->"):
        update_pages(readme, results, board)
    assert readme.read_text() == text and results.read_text() == PAGE


def test_a_missing_leaderboard_or_table_is_one_line_with_a_remedy(tmp_path: Path) -> None:
    readme, results, board = write(tmp_path, board="**scenes** (test)\n\n| cora |\n")
    with pytest.raises(DataError, match=r"leaderboard.md: .*'scenes-study' is missing"):
        update_pages(readme, results, board)
    board.unlink()
    with pytest.raises(DataError, match="Run 'manymatch report'"):
        update_pages(readme, results, board)
    assert readme.read_text() == results.read_text() == PAGE
