"""The papers' numbers: what the files hold, and which stand beside our results."""

import csv
from collections import Counter
from pathlib import Path

import pytest
from complete_results import recalls, write_provenance
from made_results import written
from report_pages import texts_of

from manymatch.reporting import published
from manymatch.reporting.published import published_costs, published_results
from manymatch.reporting.sections import published as section
from manymatch.results.runs import read_runs

ROOT = Path(__file__).parents[2]
CUTS = ("r1", "r5", "r10")
RESULTS = published_results()


def shared(folder, name):
    """A table that the files were taken from."""
    path = folder.parent / "published" / name
    if not path.is_file():
        pytest.skip("no published tables here")
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_recalls_and_their_sum_agree_but_for_the_rows_that_are_printed_so():
    off = [result for result in RESULTS if abs(_difference(result.values)) > 0.31]
    assert len(off) == 9
    assert {result.paper for result in off} == {"MaxMatch", "CORA"}


def _difference(values):
    found = [value for key, value in values.items() if key.rpartition(".")[2] in CUTS]
    printed = [value for key, value in values.items() if key.endswith("rsum")]
    return sum(found) - printed[0] if printed and len(found) == 6 else 0.0


def test_no_number_of_the_results_is_lost(real_data):
    """Each value of the tables that they were taken from, as often as it is there."""
    wanted = [
        (row["dataset"], row["setting"], float(row[key]))
        for row in shared(real_data, "retrieval.csv")
        for key in row
        if (key.startswith(("i2t", "t2i")) or key == "rsum") and row[key]
    ]
    judged = [
        (row["dataset"], row["setting"], float(row["value"]))
        for row in shared(real_data, "one_to_many.csv")
        if row["metric"] != "r1" or row["dataset"] not in ("coco", "cub")
    ]
    others = [
        (row["dataset"], "test", float(row["value"]))
        for row in shared(real_data, "other_tasks.csv")
    ]
    apart = ("eccv_caption", "cxc")
    values = [
        (result.setting, "test", value)
        if result.setting in apart
        else (result.dataset, result.setting, value)
        for result in RESULTS
        for value in result.values.values()
    ]
    assert sorted(values) == sorted([*wanted, *judged, *others])


def test_no_number_of_the_ablations_is_lost(real_data):
    wanted = [
        (row["setting"], row["metric"].replace("_", " "), row["value"])
        for row in shared(real_data, "ablations.csv")
    ]
    values = [
        (name.text, column.heading, cell.text)
        for table in published.published_ablations().values()
        for name, *cells in table.rows
        for column, cell in zip(table.columns[1:], cells, strict=True)
        if cell.text
    ]
    assert len(values) == 232
    assert not Counter(wanted) - Counter(values)


def test_every_cost_is_the_papers(real_data):
    """Those of the parsed tables; only DivE's "about 80 times" stands in words on the page."""
    factors = {"KFLOPs": 1e3, "MFLOPs": 1e6, "ms": 1e-3}
    theirs = [
        (row["paper"], pytest.approx(float(row["value"]) * factors.get(row["unit"], 1)))
        for row in shared(real_data, "efficiency.csv")
        if row["method"] != "scan/dive"
    ]
    ours = [(item.paper.lower(), fact.value) for item in published_costs() for fact in item.facts]
    assert len(ours) == len(theirs) == 24
    assert all(fact in ours for fact in theirs)


def test_maxmatchs_tables_are_whole():
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
def test_every_experiment_named_is_there_and_has_numbers(name):
    assert (ROOT / "experiments" / f"{name}.yaml").is_file()
    paper, section, _ = published.ABLATION_METRICS[name]
    assert published.tables_beside(name)
    text = (ROOT / "experiments" / f"{name}.yaml").read_text()
    assert paper in text and section.removesuffix(" 3").removesuffix(" 4") in text


def write(reports, **change):
    """The comparisons of one more result with this change of its provenance."""
    origin = {"split": "test", "seed": 0, "features": "lite0", "setting": "small-scale", **change}
    write_provenance(reports, origin)
    path = reports / "results" / origin["dataset"] / f"{origin['preset']}.json"
    written(path, recalls(9.0))
    runs = [run for run in read_runs(reports) if run.dataset == origin["dataset"]]
    return section.comparisons(origin["dataset"], runs)


def test_clips_stand_beside_the_papers_rows_of_the_same_method(reports):
    change = {"dataset": "youcook2", "preset": "swamp", "method": "swamp_video"}
    (comparison,) = write(reports, **change, images=3350, captions=3350)
    (table,) = comparison.ours.values()
    assert texts_of(table)[0][3:] == ["9.0", "80.0", "90.0", "1.0"]
    assert texts_of(comparison.theirs)[0][3:] == ["9.4", "24.9", "35.3", "22"]
    runs = [run for run in read_runs(reports) if run.dataset == "youcook2"]
    text = "".join(section.to_markdown("youcook2", runs))
    assert "SwAMP (no pretraining)" in text and "FV-CCA" not in text


@pytest.mark.parametrize("changed", [{"split": "validation"}, {"images": 21}, {"images": 5001}])
def test_what_is_not_on_the_papers_test_images_stands_beside_none(reports, changed):
    origin = {"dataset": "coco", "preset": "dive", "method": "dive", "captions": 25_010}
    assert len(write(reports, **origin, images=5000)) == 1
    assert write(reports, **origin | {"images": 5000} | changed) == []


def test_the_papers_rows_come_best_first_and_each_once(reports):
    origin = {"dataset": "coco", "preset": "dive", "method": "dive", "captions": 25_010}
    (comparison,) = write(reports, **origin, images=5000)
    rows = texts_of(comparison.theirs)
    sums = [float(row[3]) for row in rows if row[3] != "-"]
    assert sums == sorted(sums, reverse=True)
    shown = [(name, *cells) for name, _, *cells in rows]
    assert len(set(shown)) == len(shown)
