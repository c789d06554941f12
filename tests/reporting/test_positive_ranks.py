"""Ranks from run files: R@K over K, and the hardest queries."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_pages import edit, pages_of, section_of

from manymatch.reporting.sections import ranks as sections
from manymatch.reporting.table import Table
from manymatch.results.all_results import AllResults
from manymatch.results.rankings import read_positive_ranks
from manymatch.results.runs import read_runs
from manymatch.util.errors import DataError

RUN = """\
a#0 Q0 b 1 0.9 t
a#0 Q0 a 2 0.8 t
a#0 Q0 c 3 0.8 t
b#0 Q0 b 1 0.9 t
b#0 Q0 a 2 0.8 t
b#0 Q0 c 3 0.7 t
c#0 Q0 b 1 0.9 t
c#0 Q0 a 2 0.8 t
c#0 Q0 d 3 0.7 t
"""


def test_the_first_positive_counts_and_ties_count_against_it(tmp_path: Path) -> None:
    path = tmp_path / "t2i.trec"
    path.write_text(RUN)
    ranks = read_positive_ranks(path)
    assert ranks is not None
    assert (ranks.depth, ranks.ranks) == (3, {"a#0": 3, "b#0": 1, "c#0": None})
    assert [round(ranks.recall(k), 1) for k in (1, 2, 3)] == [33.3, 33.3, 66.7]
    path.write_text("a Q0 b#0 1 0.9 t\na Q0 a#1 2 0.8 t\na Q0 a#0 3 0.8 t\n")
    ranks = read_positive_ranks(path)
    assert ranks is not None and ranks.ranks == {"a": 2}  # the tie is another positive
    path.write_text("a%20b%25#0 Q0 a%20b%25 1 0.9 t\n")
    ranks = read_positive_ranks(path)
    assert ranks is not None and ranks.ranks == {"a b%#0": 1}


def test_a_missing_run_file_is_none_and_a_faulty_one_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t2i.trec"
    assert read_positive_ranks(path) is None
    faults = ("a#0 Q0 b first 0.9 t\n", "a#0 Q0 b 1\n", "a#0 Q0 b  0.9 t\n")
    words = ("expected lines 'QUERY", "expected lines 'QUERY", "a line has no rank")
    for text, word in zip(faults, words, strict=True):
        path.write_text(text)
        with pytest.raises(DataError, match=rf"t2i\.trec: {word}") as error:
            read_positive_ranks(path)
        assert "\n" not in str(error.value)


def write_run(reports: Path, recalls: tuple[float, float, float]) -> None:
    """The run file of vsepp's captions: ten queries with these ranks; the metrics fit, if `recalls`
    are (50, 80, 90)."""
    ranks = [1] * 5 + [2, 4, 5, 9, 20]
    lines = [
        f"{query:06d}#0 Q0 {query if rank == own else 900 + rank:06d} {rank} {1 - rank / 100} t"
        for query, own in enumerate(ranks)
        for rank in range(1, 21)
    ]
    folder = reports / "runs" / "scenes" / "vsepp"
    (folder / "t2i.trec").write_text("\n".join(lines) + "\n")
    path = reports / "results" / "scenes" / "vsepp.json"
    values = dict(zip(("r1", "r5", "r10"), recalls, strict=True))
    edit(path, lambda metrics: metrics["t2i"].update(values))


@pytest.mark.parametrize(("recalls", "last"), [((50, 80, 90), "R@20"), ((40, 70, 80), "R@10")])
def test_a_run_file_is_drawn_if_it_agrees_with_the_metrics(
    reports: Path, recalls: tuple[float, float, float], last: str
) -> None:
    write_run(reports, recalls)
    results = AllResults([run for run in read_runs(reports) if run.dataset == "scenes"])
    view = sections.recall_curve(results)
    assert view is not None
    _, t2i = view.blocks[0].blocks  # type: ignore[attr-defined]
    lines = {line.name: line for line in t2i.lines}
    assert lines["vsepp"].summary.startswith(last)
    assert lines["cora"].summary.startswith("R@10")


def test_the_hardest_queries_come_first(reports: Path) -> None:
    write_run(reports, (50, 80, 90))
    runs = [run for run in read_runs(reports) if run.dataset == "scenes"]
    view = sections.hardest(AllResults(runs))
    assert view is not None
    tables = [block for block in view.blocks if isinstance(block, Table)]
    assert [table.title for table in tables] == ["Hardest images", "Hardest captions"]
    for table in tables:
        assert [column.title for column in table.columns[1:]] == ["cora", "vsepp"]
        means = [sum(cell.value or 0 for cell in row[1:]) / 2 for row in table.rows]
        assert means == sorted(means, reverse=True) and len(means) == 5
    assert "Hardest captions" in section_of(pages_of(reports)["scenes-queries"], "hardest")
