"""The leaderboard: its numbers, its best values, and its files."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

from manymatch.reporting import leaderboard
from manymatch.reporting.report import report
from manymatch.reporting.table import Table
from manymatch.results.runs import Run, read_runs


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


def test_equal_values_are_both_best_and_a_single_run_has_none(reports: Path) -> None:
    run = read_runs(reports)[0]
    assert all(cell.best for row in board_of([run, run]).rows for cell in row[2:])
    assert not any(cell.best for row in board_of([run]).rows for cell in row)


def test_columns_without_a_number_are_left_out(reports: Path) -> None:
    groups = {
        name: [group for group, _ in board_of(runs).groups if group]
        for name, runs in leaderboard.by_dataset(read_runs(reports))
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
