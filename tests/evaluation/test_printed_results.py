"""Commands that compute numbers end with the table on standard output and the path of the file."""

import csv
from pathlib import Path

import pytest
from tiny_checkout import make_checkout
from tiny_data import TinyData
from untrained import save_untrained

from manymatch.cli.commands import app
from manymatch.evaluation.external.split_table import read_split
from manymatch.util.errors import DataError

WRITTEN = {
    "evaluate tiny vsepp": "reports/results/tiny/vsepp.json",
    "ensemble tiny vsepp cora": "reports/results/tiny/vsepp+cora.json",
    "rerank tiny cora": "reports/results/tiny/cora+rerank.json",
    "probe tiny cora --only reranking": "reports/probes/tiny/cora.json",
    "clusters tiny swamp": "reports/clusters/tiny/swamp.json",
}


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    """A checkout with an untrained model of each method that a command needs."""
    work = tmp_path_factory.mktemp("work")
    layout = make_checkout(tmp_path_factory.mktemp("checkout"), work).layout
    settings = {"swamp": {"n_classes": 5, "queue": 8}}
    for name in ("vsepp", "cora", "swamp"):
        save_untrained(layout.model("tiny", name), TinyData(work), name, settings.get(name))
    return layout


def test_the_table_is_on_standard_output_and_the_progress_on_standard_error(
    layout, monkeypatch, capsys
):
    monkeypatch.chdir(layout.root)
    monkeypatch.delenv("COLUMNS", raising=False)
    for command, path in WRITTEN.items():
        app(command.split(), standalone_mode=False)
        out, err = capsys.readouterr()
        lines = out.splitlines()
        assert lines[-1] == path and Path(path).is_file(), command
        assert any(line.startswith("───") for line in lines), command
        assert max(map(len, lines)) <= 80 and "\x1b" not in out, command
        assert "embed" in err and "embed" not in out, command


def test_a_run_ends_with_its_table_the_report_and_commands_to_go_on(layout, monkeypatch, capsys):
    monkeypatch.chdir(layout.root)
    for command in ("evaluate tiny vsepp", "report", "results"):
        app(command.split(), standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    table = [line for line in lines if line.startswith(("Method", "vsepp"))]
    assert len(table) >= 2 and max(map(len, lines)) <= 100
    assert "reports/index.html" in lines and Path("reports/index.html").is_file()
    commands = [line.split() for line in lines if line.startswith("  manymatch ")]
    assert [command[1] for command in commands] == ["index", "serve", "demo"]
    assert all(Path(path).exists() for path in (commands[0][2], commands[0][4]))


def test_ids_are_listed_in_the_order_of_the_rows(layout, monkeypatch, tmp_path):
    monkeypatch.chdir(layout.root)
    app(["ids", "tiny", "--to", str(tmp_path / "ids")], standalone_mode=False)
    images, captions = (
        [*csv.DictReader((tmp_path / "ids" / f"{name}.csv").read_text().splitlines())]
        for name in ("images", "captions")
    )
    table = read_split(layout.captions("tiny"), "test")
    assert [row["image_id"] for row in images] == table.image_ids
    assert [row["caption_id"] for row in captions] == table.table_caption_ids
    assert all(Path(row["file"]).parent.is_relative_to("data/raw/tiny") for row in images)
    assert all(row["caption"] for row in captions)
    with pytest.raises(DataError, match="no row of the split 'none'"):
        app(["ids", "tiny", "--to", "x", "--split", "none"], standalone_mode=False)
    assert not Path("x").exists()
