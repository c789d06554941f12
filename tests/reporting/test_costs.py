"""Costs in the report: ours beside the papers', on one scale, and true to the published figures."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from made_results import write_costs
from report_pages import pages_of, section_of

from manymatch.experiments.costs.measure import GALLERIES
from manymatch.reporting import costs
from manymatch.reporting.blocks import Heading
from manymatch.reporting.costs import query_charts
from manymatch.reporting.published import published_costs
from manymatch.reporting.table import Table
from manymatch.results.costs import Costs


def measured(folder: Path, **change: Any) -> Costs:
    return Costs.read(write_costs(folder, **change))


KEYS = {column.heading: key for key, column in costs.COLUMNS.items()}


def cells(table: Table, name: str, heading: str = "") -> dict[str, str]:
    """The texts of a row by the keys of the columns."""
    (row,) = [row for row in table.rows if (row[0].text, row[1].note) == (name, heading)]
    pairs = zip(table.columns, row, strict=True)
    return {KEYS[column.heading]: cell.plain for column, cell in pairs if column.heading in KEYS}


def test_our_rows_say_what_was_measured(tmp_path: Path) -> None:
    table = costs.table(measured(tmp_path))
    assert cells(table, "dive") == {
        "vectors": "4 \u00d7 256",
        "parameters": "2.9 M",
        "multiply_adds": "4.1 K",
        "relative": "16 \u00d7",
        "batch": "64 / 320",
        "step": "0.3",
        "test": "1.98",
        "ranking": "0.08",
        "parse": "-",
        "encode": "3.2",
        "search 100000": "32",
        "query 10000": "6.42",
        "query 100000": "35.2",
    }
    scan = cells(table, "cross-attention")
    assert scan["search 100000"] == "2,000"
    assert (scan["batch"], scan["step"]) == ("128 / 128", "4.5")
    assert (scan["test"], scan["ranking"]) == ("338 (scaled)", "336 (scaled)")
    assert cells(table, "cora")["query 100000"] == "18.7"  # 12.3 + 4.4 + 2.02


def test_memory_is_a_column_where_a_gpu_has_some(tmp_path: Path) -> None:
    value = json.loads(write_costs(tmp_path).read_text())
    value["rows"][4]["step"]["peak_gpu_memory_mb"] = 5120.4
    table = costs.table(measured(tmp_path, rows=value["rows"]))
    assert cells(table, "dive")["memory"] == "5,120"
    assert cells(table, "vsepp")["memory"] == "-"


def test_the_papers_rows_follow_marked_and_with_their_hardware(tmp_path: Path) -> None:
    table = costs.table(measured(tmp_path))
    marks = [row[1].badges for row in table.rows]
    assert marks == [("small-scale",)] * 9 + [("untrained",)] + [("published",)] * 13
    swamp = cells(table, "SwAMP", "SwAMP, table 12, Flickr30K")
    assert (swamp["step"], swamp["test"], swamp["encode"]) == ("0.09", "3.8", "-")
    assert cells(table, "DivE", "DivE, section 4.4")["multiply_adds"] == "16.4 K"
    cora = cells(table, "CORA", "CORA, section 7")
    parts = ("parse", "encode", "search 100000", "query 10000", "query 100000")
    assert [cora[part] for part in parts] == ["40", "14", "10", "60", "60"]
    sgraf = cells(table, "SGRAF", "CORA, section 7")
    assert (sgraf["query 10000"], sgraf["query 100000"]) == ("46,000", "470,000")
    hardware = {row[1].note: row[-1].text for row in table.rows}
    assert "RTX 2080 Ti" in hardware["SwAMP, table 12, COCO, 5K test"]
    assert hardware["CORA, section 7"] == "not named"
    assert hardware[""] == "Some processor 2.50GHz, 2 threads"


def test_without_vse_infinity_nothing_of_ours_is_in_its_multiples(tmp_path: Path) -> None:
    value = json.loads(write_costs(tmp_path).read_text())
    rows = [row for row in value["rows"] if row["method"] != "vse_infinity"]
    table = costs.table(measured(tmp_path, rows=rows))
    assert cells(table, "dive")["relative"] == "-"
    assert cells(table, "SCAN", "DivE, appendix B.1, Flickr30K validation")["relative"] != "-"


def test_every_published_figure_is_the_papers(real_data: Path) -> None:
    """Those of the parsed tables; only DivE's "about 80 times" stands in words on the page."""
    path = real_data.parent / "published" / "efficiency.csv"
    if not path.is_file():
        pytest.skip("the papers' tables are not here")
    with path.open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["method"] != "scan/dive"]
    factors = {"KFLOPs": 1e3, "MFLOPs": 1e6, "ms": 1e-3}
    theirs = [
        (row["paper"], pytest.approx(float(row["value"]) * factors.get(row["unit"], 1)))
        for row in rows
    ]
    ours = [(item.paper.lower(), fact.value) for item in published_costs() for fact in item.facts]
    assert len(ours) == len(theirs) == 24
    assert all(fact in ours for fact in theirs)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.18349, 3, "0.183"),
        (999.7, 3, "1,000"),
        (9352.0, 4, "9,352"),
        (336.9, 4, "336.9"),
        (25.94, 3, "25.9"),
        (470_000.0, 4, "470,000"),
    ],
)
def test_numbers_keep_the_digits_that_count(value: float, digits: int, text: str) -> None:
    assert costs.number(value, digits) == text


def test_a_query_is_drawn_in_parts_over_the_gallery(tmp_path: Path) -> None:
    ours, published = query_charts(measured(tmp_path))
    drawn = {chart.title: [line.name for line in chart.lines] for chart in ours}
    assert len(drawn) == 10
    assert drawn["dive"] == ["encode", "search", "query"]
    assert drawn["cora"] == ["parse", "encode", "search", "query"]
    assert drawn["cross-attention"] == ["encode", "search", "query"]
    dive = next(chart for chart in ours if chart.title == "dive")
    assert [tick.label for tick in dive.x_ticks] == ["10", "1K", "100K"]
    assert [x for _, x, _ in dive.lines[1].dots] == [0, 250, 500, 750, 1000]
    assert dive.lines[1].summary == "0.023 to 32 ms"
    theirs = {chart.title: chart.lines for chart in published}
    assert list(theirs) == ["CORA (CORA, section 7)", "SGRAF (CORA, section 7)"]
    assert [x for _, x, _ in theirs["SGRAF (CORA, section 7)"][0].dots] == [750, 1000]


def test_all_charts_share_one_scale_which_holds_them(tmp_path: Path) -> None:
    every = [chart for charts in query_charts(measured(tmp_path)) for chart in charts]
    assert len({tuple(chart.y_ticks) for chart in every}) == 1
    for chart in every:
        for line in chart.lines:
            numbers = [float(text) for text in re.findall(r"[-\d.]+", line.path)]
            assert all(0 <= number <= 1000 for number in numbers)


def test_the_page_shows_a_data_sets_costs(reports: Path) -> None:
    write_costs(reports, hardware="<b>fast</b>", git_revision="0123456789abcdef")
    page = pages_of(reports)["scenes-efficiency"]
    assert 'href="#costs"' in page
    assert "&lt;b&gt;fast&lt;/b&gt;" in page and "revision 01234567," in page
    section = section_of(page, "costs")
    assert section.count("<figure") == 12 and section.count("<tr>") == 1 + 10 + 13


def test_a_terminal_shows_our_costs_alone(tmp_path: Path) -> None:
    heading, table = costs.blocks(measured(tmp_path))
    assert isinstance(heading, Heading) and "2 threads" in heading.small
    assert isinstance(table, Table) and len(table.rows) == 10
    assert {"From", "Hardware"}.isdisjoint(column.title for column in table.columns)


def test_galleries_are_those_that_the_table_shows() -> None:
    shown = {int(key.split()[1]) for key in costs.COLUMNS if " " in key}
    assert shown <= set(GALLERIES)
