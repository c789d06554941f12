"""The papers' numbers: what the file holds, and our results beside them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from manymatch.reporting import comparison, published_results
from manymatch.reporting.leaderboard import to_markdown
from manymatch.reporting.report import report
from manymatch.results.runs import read_runs

CUTS = ("r1", "r5", "r10")
RESULTS = published_results.published_results()


def _one(**wanted: str) -> published_results.PublishedResult:
    (found,) = [
        each
        for each in RESULTS
        if all(getattr(each, name) == value for name, value in wanted.items())
    ]
    return found


def test_facts_are_those_of_the_papers() -> None:
    alone, joined = [
        each
        for each in RESULTS
        if (each.paper, each.method, each.setting) == ("DivE", "DivE", "5k")
        and each.features == "resnext101-wsl"
    ]
    assert (alone.marks, joined.marks) == ("", "ensemble")
    assert (joined.section, joined.text_encoder) == ("table 1", "bert")
    msrm = _one(paper="MSRM", method="MSRM", dataset="coco", setting="1k")
    assert msrm.values["pmrp.1k.i2t"] == 46.43
    assert msrm.values["coco_1k.i2t.r1"] == 68.85
    cub = _one(paper="MSRM", method="MSRM", setting="zero_shot")
    assert cub.values["classes.zero_shot.t2i.r_precision"] == 28.43


def test_recalls_and_their_sum_agree_but_for_the_rows_that_are_printed_so() -> None:
    off = [each for each in RESULTS if abs(_difference(each)) > 0.31]
    assert len(off) == 9
    assert {each.paper for each in off} == {"MaxMatch", "CORA"}


def _difference(each: published_results.PublishedResult) -> float:
    recalls = [value for key, value in each.values.items() if key.rpartition(".")[2] in CUTS]
    printed = [value for key, value in each.values.items() if key.endswith("rsum")]
    return sum(recalls) - printed[0] if printed and len(recalls) == 6 else 0.0


def _shared(folder: Path, name: str) -> list[dict[str, str]]:
    path = folder.parent / "published" / name
    if not path.is_file():
        pytest.skip("no published tables here")
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_no_number_of_the_tables_is_lost(real_data: Path) -> None:
    """Each value of the tables that they were taken from, as often as it is there."""
    wanted = [
        (row["dataset"], row["setting"], float(row[key]))
        for row in _shared(real_data, "retrieval.csv")
        for key in row
        if (key.startswith(("i2t", "t2i")) or key == "rsum") and row[key]
    ]
    judged = [
        (row["dataset"], row["setting"], float(row["value"]))
        for row in _shared(real_data, "one_to_many.csv")
        if row["metric"] != "r1" or row["dataset"] not in ("coco", "cub")
    ]
    others = [
        (row["dataset"], "test", float(row["value"]))
        for row in _shared(real_data, "other_tasks.csv")
    ]
    apart = ("eccv_caption", "cxc")
    found = [
        (each.setting, "test", value)
        if each.setting in apart
        else (each.dataset, each.setting, value)
        for each in RESULTS
        for value in each.values.values()
    ]
    assert sorted(found) == sorted([*wanted, *judged, *others])


def _numbers(best: float) -> dict[str, Any]:
    way = {"r1": best, "r5": 80.0, "r10": 90.0, "medr": 1.0, "meanr": 3.0}
    return {"i2t": way, "t2i": way, "rsum": 2 * best + 340}


def _pmrp(i2t: float, t2i: float) -> dict[str, Any]:
    """The means over zeta, and values of zeta 0, 1, 2 around them."""
    alone = {f"zeta{z}": {"i2t": i2t + z - 1, "t2i": t2i + 10 * (z - 1)} for z in range(3)}
    return {"i2t": i2t, "t2i": t2i} | alone


@pytest.fixture
def coco(reports: Path) -> Path:
    """The results with those of three models on COCO: of all protocols, of pairs, of another's."""
    for preset, method, setting, extra in (
        ("cora", "cora", "reproduced", True),
        ("dive", "dive", "small-scale", False),
        ("theirs", "external", "external", False),
    ):
        values = _numbers(50.0)
        if extra:
            values |= {"coco_1k": _numbers(70.0), "pmrp": {"1k": _pmrp(41.25, 42.0)}}
            values |= {"cxc": {way: {"r1": 60.0} for way in ("i2t", "t2i")}}
        record = json.loads((reports / "provenance/scenes/cora.json").read_text())
        record |= {"dataset": "coco", "preset": preset, "method": method, "setting": setting}
        record |= {"images": 5000, "captions": 25_010}
        for kind, value in (("results", values), ("provenance", record)):
            path = reports / kind / "coco" / f"{preset}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(value))
    return reports


def test_clips_stand_beside_the_papers_too(reports: Path) -> None:
    record = json.loads((reports / "provenance/scenes/cora.json").read_text())
    record |= {"dataset": "youcook2", "preset": "swamp", "method": "swamp_video"}
    record |= {"images": 3350, "captions": 3350}
    for kind, value in (("results", _numbers(9.0)), ("provenance", record)):
        path = reports / kind / "youcook2" / "swamp.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value))
    runs = [run for run in read_runs(reports) if run.dataset == "youcook2"]
    (found,) = comparison.comparisons("youcook2", runs)
    assert found.title == "YouCook2"
    assert [column.label for column in found.columns] == ["R@1", "R@5", "R@10", "MedR"]
    assert found.ours[0].cells == ["9.0", "80.0", "90.0", "1.0"]
    assert found.theirs[0].name == "SwAMP (pretrained)"
    assert found.theirs[0].cells == ["9.4", "24.9", "35.3", "22"]
    text = "".join(comparison.to_markdown("youcook2", runs))
    assert "SwAMP (no pretraining)" in text and "FV-CCA" not in text


def _of_coco(reports: Path) -> dict[str, comparison.Comparison]:
    runs = [run for run in read_runs(reports) if run.dataset == "coco"]
    return {each.title: each for each in comparison.comparisons("coco", runs)}


def test_our_rows_stand_with_the_papers_of_the_same_setting(coco: Path) -> None:
    found = _of_coco(coco)
    assert list(found) == ["COCO 1K, mean of five folds", "COCO 5K", "CxC"]
    small, whole = found["COCO 1K, mean of five folds"], found["COCO 5K"]
    assert [row.name for row in small.ours] == ["cora"]
    assert [(row.name, row.mark) for row in whole.ours] == [
        ("cora", "reproduced"),
        ("dive", "small-scale"),
        ("theirs", "external"),
    ]
    heads = [column.label for column in small.columns]
    assert heads[:2] == ["rsum", "R@1"]
    assert dict(zip(heads, small.ours[0].cells, strict=True))["PMRP"] == "42.0"
    assert {row.mark for row in whole.theirs} == {"published"}


def test_pmrp_is_drawn_over_zeta_where_there_are_values_of_each(coco: Path) -> None:
    found = _of_coco(coco)
    charts = found["COCO 1K, mean of five folds"].charts
    assert (charts["small-scale"], charts["external"]) == ([], [])
    there, back = charts["reproduced"]
    assert there.title == "PMRP over zeta, image → text"
    assert [tick.label for tick in there.x_ticks] == ["0", "1", "2"]
    (line,) = there.lines
    assert (line.name, line.summary) == ("cora", "40.2, 41.2, 42.2")
    assert [(text, x) for text, x, _ in back.lines[0].dots] == [
        ("cora, zeta 0: 32.0", 0),
        ("cora, zeta 1: 42.0", 500),
        ("cora, zeta 2: 52.0", 1000),
    ]
    heights = [y for *_, y in back.lines[0].dots]
    assert heights == sorted(heights, reverse=True) and 0 <= min(heights) <= max(heights) <= 1000
    assert not any(found["COCO 5K"].charts.values())  # no values of `5k` were written


def test_the_page_shows_pmrp_over_zeta_and_each_answers_labels(coco: Path) -> None:
    path = coco / "runs/scenes/cora/samples.json"
    samples = json.loads(path.read_text())
    for query, zetas in ((samples["images"][0], (0, 1, None)), (samples["captions"][0], (3,))):
        for answer, zeta in zip(query["retrieved"], zetas, strict=False):
            answer["zeta"] = zeta
    path.write_text(json.dumps(samples))
    report(coco)
    page = (coco / "index.html").read_text(encoding="utf-8")
    assert page.count("<b>PMRP over zeta, image → text</b>") == 1
    texts = ("0 labels differ<", "1 label differs<", "3 labels differ<")
    assert [page.count(text) for text in texts] == [1, 1, 1]


def test_the_papers_rows_come_best_first_and_each_once(coco: Path) -> None:
    whole = _of_coco(coco)["COCO 5K"]
    sums = [float(row.cells[0]) for row in whole.theirs if row.cells[0] != "-"]
    assert sums == sorted(sums, reverse=True)
    rows = [(row.name, row.about, tuple(row.cells)) for row in whole.theirs]
    assert len(set(rows)) == len(rows)
    again = [row.place for row in whole.theirs if row.name == "CAAN"]
    assert any(place.count(";") >= 1 for place in again)


def test_markdown_has_the_papers_rows_of_our_methods(coco: Path) -> None:
    text = to_markdown(read_runs(coco))
    tables = _tables(text.partition("**COCO 5K, beside")[2].partition("\n\n**")[0])
    assert {mark: names for mark, names in tables.items() if mark != "published"} == {
        "reproduced": ["cora"],
        "small-scale": ["dive"],
        "external": ["theirs"],
    }
    # Beside the external one all methods that are ours too.
    assert {"CORA", "DivE", "VSE++", "PCME"} <= {name.split()[0] for name in tables["published"]}
    assert "SCAN" not in tables["published"]
    assert "*external*: embeddings or scores of a model" in text


def _tables(text: str) -> dict[str, list[str]]:
    """The first column of each table, by the mark above it."""
    found: dict[str, list[str]] = {}
    for part in text.split("\n\n*")[1:]:
        lines = [line for line in part.splitlines() if line.startswith("| ")]
        assert len({line.count("|") for line in lines}) == 1
        found[part.partition("*")[0]] = [line.split("|")[1].strip() for line in lines[2:]]
    return found


def test_without_another_s_model_there_are_the_papers_rows_of_our_methods_alone(
    coco: Path,
) -> None:
    runs = [run for run in read_runs(coco) if run.preset == "dive"]
    tables = _tables("\n\n".join(comparison.to_markdown("coco", runs)))
    assert {name.split()[0] for name in tables["published"]} == {"DivE"}


@pytest.mark.parametrize(
    "changed", [{"split": "validation"}, {"images": 21}, {"images": 5001}], ids=str
)
def test_what_is_not_on_the_papers_test_images_stands_beside_none(
    coco: Path, changed: dict[str, Any]
) -> None:
    for path in (coco / "provenance/coco").glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    assert _of_coco(coco) == {}
    text = to_markdown(read_runs(coco))
    assert "**coco**" in text and "the papers' numbers" not in text


def test_settings_have_leaderboards_of_their_own(coco: Path) -> None:
    text = to_markdown(read_runs(coco)).partition("**coco**")[2].partition("\n\n**COCO")[0]
    assert [line.split("|")[2].strip() for line in text.splitlines() if "| 50" in line] == [
        "reproduced",
        "small-scale",
        "external",
    ]
    assert text.count("**coco** (test: 5,000 images") == 2
    report(coco)
    page = (coco / "index.html").read_text(encoding="utf-8")
    assert page.count('aria-label="Leaderboard of coco, ') == 3


def test_the_leaderboard_has_the_columns_of_the_protocols(coco: Path) -> None:
    text = to_markdown(read_runs(coco))
    (head,) = [line for line in text.partition("**coco**")[2].splitlines() if "1K rsum" in line][:1]
    assert head.split("|")[-2].strip() == "1K rsum"
    assert "Zero-shot R-P" not in text


def test_the_page_tells_them_apart(coco: Path) -> None:
    report(coco)
    page = (coco / "index.html").read_text(encoding="utf-8")
    assert 'href="#coco-published"' in page
    section = page.partition('id="coco-published"')[2].partition("</section>")[0]
    for mark in ("reproduced", "small-scale", "external", "published"):
        assert f'<span class="setting {mark}">' in section


def _without(reports: Path) -> Iterator[str]:
    for name in ("scenes", "flickr8k"):
        runs = [run for run in read_runs(reports) if run.dataset == name]
        yield from comparison.to_markdown(name, runs)


def test_data_sets_of_no_paper_have_no_comparison(reports: Path) -> None:
    assert list(_without(reports)) == []
    report(reports)
    assert "-published" not in (reports / "index.html").read_text(encoding="utf-8")


def test_every_method_has_the_papers_name() -> None:
    names = {each.method.split()[0] for each in RESULTS}
    assert set(comparison.OF_METHOD.values()) <= names
