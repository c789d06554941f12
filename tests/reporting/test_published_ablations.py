"""The papers' ablations: all of them are there, each stands below ours of the same question."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest
from made_results import write_trained
from report_pages import pages_of, texts_of

from manymatch.reporting import ablations, published
from manymatch.results.experiments import Experiment

ROOT = Path(__file__).parents[2]
ALL = published.published_ablations()


def test_facts_are_those_of_the_papers() -> None:
    (alpha,) = published.tables_beside("dive-alpha")
    assert alpha.title.startswith("DivE, table 4: hyperparameter: smooth-Chamfer scale alpha")
    assert texts_of(alpha)[0] == ["alpha=1", "495.2"]
    (losses,) = published.tables_beside("msrm-losses")
    heads = [column.heading for column in losses.columns]
    assert heads == ["Setting", "i2t r precision", "i2t r1", "t2i r precision", "t2i r1"]
    assert texts_of(losses)[0] == ["full model", "27.9", "51.0", "28.8", "39.2"]


def test_no_number_of_the_table_is_lost(real_data: Path) -> None:
    path = real_data.parent / "published" / "ablations.csv"
    if not path.is_file():
        pytest.skip("no published tables here")
    with path.open(encoding="utf-8", newline="") as stream:
        wanted = [
            (row["setting"], row["metric"].replace("_", " "), row["value"])
            for row in csv.DictReader(stream)
        ]
    values = [
        (name.text, column.heading, cell.text)
        for table in ALL.values()
        for name, *cells in table.rows
        for column, cell in zip(table.columns[1:], cells, strict=True)
        if cell.text
    ]
    assert len(values) == 232
    assert not Counter(wanted) - Counter(values)


def test_maxmatchs_tables_are_whole() -> None:
    """Table 3 has eleven rows, table 4 all sets and eight single elements with three similarities.
    Which losses ten rows of table 3 have is not known, so that they are numbered."""
    (losses,) = published.tables_beside("maxmatch-losses")
    rows = texts_of(losses)
    printed_values = "438.98 439.57 441.76 442.43 443.11 444.10 441.23 442.67 443.49 444.49 446.53"
    assert [value for _, value in rows] == printed_values.split()
    assert sum("some of the losses (row " in name for name, _ in rows) == 10
    (elements,) = (
        table
        for table in published.tables_of_sets()
        if "elements used" in table.title and table.title.startswith("MaxMatch")
    )
    printed = dict(texts_of(elements))
    assert len(printed) == 27
    alone = {
        side: [
            printed[f"similarity=MaxMatch; {side} set: only element {number}"]
            for number in (1, 2, 3, 4)
        ]
        for side in ("image", "text")
    }
    assert alone["image"] == ["440.89", "443.78", "437.91", "442.39"]
    assert sorted(alone["image"]) == sorted(alone["text"])  # the elements pair up (section 4.4)


@pytest.mark.parametrize("name", published.ABLATION_METRICS)
def test_every_ablation_named_is_there_and_has_numbers(name: str) -> None:
    assert (ROOT / "experiments" / f"{name}.yaml").is_file()
    paper, section, _ = published.ABLATION_METRICS[name]
    assert published.tables_beside(name)
    text = (ROOT / "experiments" / f"{name}.yaml").read_text()
    assert paper in text and section.removesuffix(" 3").removesuffix(" 4") in text


def test_they_stand_below_ours_marked_and_in_a_table_of_their_own(reports: Path) -> None:
    result = Experiment.read(write_trained(reports, "dive-alpha", {"similarity.alpha": [1, 4, 16]}))
    ours, mark, theirs = ablations.to_markdown(result).partition("*published* (DivE, table 4")
    assert mark and "495.2" in theirs and "495.2" not in ours
    assert published.tables_beside("scenes-study") == []
    page = pages_of(reports)["scenes-experiments"]
    assert '<span class="badge published">' in page and "alpha=64" in page
