"""Results on a terminal fit its width, and cannot change it; `golden/terminal.txt` has them."""

import re

from manymatch.reporting.report import read
from manymatch.reporting.sections import experiments, leaderboard, over_seeds
from manymatch.reporting.sections.probes import blocks_of, class_blocks
from manymatch.reporting.table import Cell, Column, Heading, Note, Table
from manymatch.reporting.terminal import show
from manymatch.results.experiments import Experiment, SyntheticExperiment
from manymatch.results.probes import Clusters, Probes


def test_everything_fits_the_width(root, monkeypatch, capsys):
    """A terminal of less than 60 columns breaks lines of 60."""
    results = read(root / "reports", root / "experiments")  # the committed results
    monkeypatch.setenv("COLUMNS", "20")
    show(leaderboard.blocks(results.runs))
    for experiment in results.current(Experiment)[:5]:
        show(experiments.blocks(experiment))
    for pairs in results.current(SyntheticExperiment):
        show(over_seeds.synthetic(pairs))
    show([class_blocks(model)[1] for model in results.current(Clusters)])
    show(blocks_of(results.current(Probes)))
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 60
    assert "\x1b" not in text and "…" not in text
    # No number is folded: every mean stands beside its deviation.
    assert not re.search(r"\d ±\s*$", text, re.MULTILINE)


def test_a_narrow_terminal_shows_every_column_with_the_names(capsys):
    columns = [Column("Method", numeric=False), *(Column(f"metric {i}") for i in range(20))]
    cells = [[Cell(name), *(Cell(f"{i}.25") for i in range(20))] for name in ("a", "b")]
    show([Table("wide", columns, cells)])
    lines = capsys.readouterr().out.splitlines()
    assert {f"{i}.25" for i in range(20)} <= {word for line in lines for word in line.split()}
    parts = sum(line.startswith("a ") for line in lines)
    assert parts == sum(line.startswith("b ") for line in lines) > 1


def test_text_from_a_file_cannot_change_the_terminal(capsys):
    show(
        [
            Heading("a\x1b[2Jb", "[red]c"),
            Note("d\x07e"),
            Table("t", [Column("x")], [[Cell("\x1b]f")]]),
        ]
    )
    text = capsys.readouterr().out
    assert "\x1b" not in text and "\x07" not in text and "[red]c" in text
