"""The papers' ablations: all of them are there, each stands below ours of the same question."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from made_results import write_ablation
from report_pages import pages_of, texts_of

from manymatch.reporting import ablations, published
from manymatch.results.ablations import Ablation

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
    assert len(values) == 204
    assert sorted(values) == sorted(wanted)


@pytest.mark.parametrize("name", published.OF_ABLATION)
def test_every_ablation_named_is_there_and_has_numbers(name: str) -> None:
    assert (ROOT / "experiments" / f"{name}.yaml").is_file()
    paper, section, _ = published.OF_ABLATION[name]
    assert published.tables_beside(name)
    text = (ROOT / "experiments" / f"{name}.yaml").read_text()
    assert paper in text and section.removesuffix(" 3").removesuffix(" 4") in text


def test_they_stand_below_ours_marked_and_in_a_table_of_their_own(reports: Path) -> None:
    result = Ablation.read(write_ablation(reports, "dive-alpha", {"similarity.alpha": [1, 4, 16]}))
    ours, mark, theirs = ablations.to_markdown(result).partition("*published* (DivE, table 4")
    assert mark and "495.2" in theirs and "495.2" not in ours
    assert published.tables_beside("scenes-study") == []
    page = pages_of(reports)["scenes-experiments"]
    assert '<span class="badge published">' in page and "alpha=64" in page
