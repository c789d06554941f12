"""The papers' numbers: what the file holds, and our results beside them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from manymatch.reporting.leaderboard import styles, to_markdown
from report_pages import edit, pages_of, texts_of

from manymatch.reporting import comparison
from manymatch.reporting.published import PublishedResult, published_results
from manymatch.reporting.sections.published import charts_over_zeta
from manymatch.results.runs import read_runs

CUTS = ("r1", "r5", "r10")
RESULTS = published_results()


def _one(**wanted: str) -> PublishedResult:
    (values,) = [
        result
        for result in RESULTS
        if all(getattr(result, name) == value for name, value in wanted.items())
    ]
    return values


def test_facts_are_those_of_the_papers() -> None:
    alone, joined = [
        result
        for result in RESULTS
        if (result.paper, result.method, result.setting) == ("DivE", "DivE", "5k")
        and result.features == "resnext101-wsl"
    ]
    assert (alone.marks, joined.marks) == ("", "ensemble")
    assert (joined.section, joined.text_encoder) == ("table 1", "bert")
    msrm = _one(paper="MSRM", method="MSRM", dataset="coco", setting="1k")
    assert msrm.values["pmrp.1k.i2t"] == 46.43
    assert msrm.values["coco_1k.i2t.r1"] == 68.85
    cub = _one(paper="MSRM", method="MSRM", setting="zero_shot")
    assert cub.values["classes.zero_shot.t2i.r_precision"] == 28.43


def test_recalls_and_their_sum_agree_but_for_the_rows_that_are_printed_so() -> None:
    off = [result for result in RESULTS if abs(_difference(result)) > 0.31]
    assert len(off) == 9
    assert {result.paper for result in off} == {"MaxMatch", "CORA"}


def _difference(result: PublishedResult) -> float:
    recalls = [value for key, value in result.values.items() if key.rpartition(".")[2] in CUTS]
    printed = [value for key, value in result.values.items() if key.endswith("rsum")]
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
    values = [
        (result.setting, "test", value)
        if result.setting in apart
        else (result.dataset, result.setting, value)
        for result in RESULTS
        for value in result.values.values()
    ]
    assert sorted(values) == sorted([*wanted, *judged, *others])


def _numbers(best: float) -> dict[str, Any]:
    way = {"r1": best, "r5": 80.0, "r10": 90.0, "medr": 1.0, "meanr": 3.0}
    return {"i2t": way, "t2i": way, "rsum": 2 * best + 340}


def _pmrp(i2t: float, t2i: float) -> dict[str, Any]:
    """The means over zeta, and values of zeta 0, 1, 2 around them."""
    alone = {f"zeta{z}": {"i2t": i2t + z - 1, "t2i": t2i + 10 * (z - 1)} for z in range(3)}
    return {"i2t": i2t, "t2i": t2i} | alone


def write(reports: Path, values: dict[str, Any], **change: Any) -> None:
    """A result with these metrics, and with the provenance of another one but for `change`."""
    record = json.loads((reports / "provenance/scenes/cora.json").read_text()) | change
    for kind, value in (("results", values), ("provenance", record)):
        path = reports / kind / record["dataset"] / f"{record['preset']}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(value))


@pytest.fixture
def coco(reports: Path) -> Path:
    """The results with those of three models on COCO: of all protocols, of pairs, of another's."""
    size = {"dataset": "coco", "images": 5000, "captions": 25_010}
    values = _numbers(50.0)
    every = values | {"coco_1k": _numbers(70.0), "pmrp": {"1k": _pmrp(41.25, 42.0)}}
    every |= {"cxc": {way: {"r1": 60.0} for way in ("i2t", "t2i")}}
    write(reports, every, preset="cora", setting="reproduced", **size)
    write(reports, values, preset="dive", method="dive", **size)
    write(reports, values, preset="theirs", method="external", setting="external", **size)
    return reports


def test_clips_stand_beside_the_papers_too(reports: Path) -> None:
    change = {"dataset": "youcook2", "preset": "swamp", "method": "swamp_video"}
    write(reports, _numbers(9.0), **change, images=3350, captions=3350)
    runs = [run for run in read_runs(reports) if run.dataset == "youcook2"]
    (comparisons,) = comparison.comparisons("youcook2", runs)
    assert comparisons.title == "YouCook2"
    heads = [column.title for column in comparisons.theirs.columns[3:]]
    assert heads == ["R@1", "R@5", "R@10", "MedR"]
    (table,) = comparisons.ours.values()
    assert texts_of(table)[0][3:] == ["9.0", "80.0", "90.0", "1.0"]
    theirs = texts_of(comparisons.theirs)[0]
    assert theirs[0] == "SwAMP (pretrained)"
    assert theirs[3:] == ["9.4", "24.9", "35.3", "22"]
    text = "".join(comparison.to_markdown("youcook2", runs))
    assert "SwAMP (no pretraining)" in text and "FV-CCA" not in text


def _of_coco(reports: Path) -> dict[str, comparison.Comparison]:
    runs = [run for run in read_runs(reports) if run.dataset == "coco"]
    return {item.title: item for item in comparison.comparisons("coco", runs)}


def test_our_rows_stand_with_the_papers_of_the_same_setting(coco: Path) -> None:
    comparisons = _of_coco(coco)
    assert list(comparisons) == ["COCO 1K, mean of five folds", "COCO 5K", "CxC"]
    small, whole = comparisons["COCO 1K, mean of five folds"], comparisons["COCO 5K"]
    assert {mark: [row[0] for row in texts_of(table)] for mark, table in whole.ours.items()} == {
        "reproduced": ["cora"],
        "small-scale": ["dive"],
        "external": ["theirs"],
    }
    (ours,) = small.ours.values()
    heads = [column.title for column in ours.columns]
    assert heads[3:5] == ["rsum", "R@1"]
    assert dict(zip(heads, texts_of(ours)[0], strict=True))["PMRP"] == "42.0"
    assert {row[1].badges for row in whole.theirs.rows} == {("published",)}


def test_pmrp_is_drawn_over_zeta_where_there_are_values_of_each(coco: Path) -> None:
    runs = [run for run in read_runs(coco) if run.dataset == "coco"]
    there, back = charts_over_zeta("1k", runs, styles(runs))
    assert there.title == "PMRP over zeta, image → text"
    assert [tick.label for tick in there.x_ticks] == ["0", "1", "2"]
    (line,) = there.lines
    assert (line.name, line.summary) == ("cora", "40.2, 41.2, 42.2")
    assert [(text, x) for text, x, _ in back.lines[0].dots] == [
        ("cora: zeta 0: 32.0", 0),
        ("cora: zeta 1: 42.0", 500),
        ("cora: zeta 2: 52.0", 1000),
    ]
    heights = [y for *_, y in back.lines[0].dots]
    assert heights == sorted(heights, reverse=True) and 0 <= min(heights) <= max(heights) <= 1000
    assert charts_over_zeta("5k", runs, styles(runs)) == []


def test_the_page_shows_pmrp_over_zeta_and_each_answers_labels(coco: Path) -> None:
    path = coco / "runs/scenes/cora/samples.json"
    samples = json.loads(path.read_text())
    for query, zetas in ((samples["images"][0], (0, 1, None)), (samples["captions"][0], (3,))):
        for answer, zeta in zip(query["retrieved"], zetas, strict=False):
            answer["zeta"] = zeta
    path.write_text(json.dumps(samples))
    pages = pages_of(coco)
    assert pages["coco-results"].count("<b>PMRP over zeta, image → text</b>") == 1
    texts = ("0 labels differ<", "1 label differs<", "3 labels differ<")
    assert [pages["scenes-queries"].count(text) for text in texts] == [1, 1, 1]


def test_the_papers_rows_come_best_first_and_each_once(coco: Path) -> None:
    rows = texts_of(_of_coco(coco)["COCO 5K"].theirs)
    sums = [float(row[3]) for row in rows if row[3] != "-"]
    assert sums == sorted(sums, reverse=True)
    shown = [(name, *cells) for name, _, *cells in rows]
    assert len(set(shown)) == len(shown)
    assert any(position.count(";") >= 1 for name, position, *_ in rows if name == "CAAN")


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
    values: dict[str, list[str]] = {}
    for part in text.split("\n\n*")[1:]:
        lines = [line for line in part.splitlines() if line.startswith("| ")]
        assert len({line.count("|") for line in lines}) == 1
        values[part.partition("*")[0]] = [line.split("|")[1].strip() for line in lines[2:]]
    return values


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
        edit(path, lambda origin: origin.update(changed))
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
    assert pages_of(coco)["coco-results"].count('aria-label="Leaderboard of coco, ') == 3


def test_the_leaderboard_has_the_columns_of_the_protocols(coco: Path) -> None:
    text = to_markdown(read_runs(coco))
    (head,) = [line for line in text.partition("**coco**")[2].splitlines() if "1K rsum" in line][:1]
    assert head.split("|")[-2].strip() == "1K rsum"
    assert "Zero-shot R-P" not in text


def test_every_method_has_the_papers_name() -> None:
    names = {result.method.split()[0] for result in RESULTS}
    assert set(comparison.PAPERS_NAME.values()) <= names
