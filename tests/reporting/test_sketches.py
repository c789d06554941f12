"""Experiments on sketches in the report: beside the papers' rows, and never mistaken for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from manymatch.reporting import page, sketches
from manymatch.reporting.table import Table
from manymatch.results.all_results import AllResults
from manymatch.results.sketches import SketchExperiment


def write(reports: Path, name: str = "made", **change: Any) -> Path:
    """Two points of two seeds each."""
    points = [
        {"label": label, "settings": {}, "runs": [one_run(seed, value) for seed in (0, 1)]}
        for label, value in (("triplet", 30.0), ("SwAMP", 36.0))
    ]
    record = {
        "name": name,
        "about": "What it is about.",
        "dataset": "sketchy-extended",
        "baseline": "triplet",
        "seeds": [0, 1],
        "points": points,
    }
    path = reports / "sketches" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record | change))
    return path


def one_run(seed: int, value: float) -> dict[str, Any]:
    values = {"map": value + seed, "map_at_200": value + 10, "map_at_200_r": 9.0, "p_at_200": 8.0}
    return {"seed": seed, **values, "validation": 50.0, "epoch": 3, "seconds": 7.0}


def texts(table: Table) -> list[list[str]]:
    return [[cell.plain for cell in row] for row in table.rows]


def test_ours_come_first_and_published_rows_say_so(tmp_path: Path) -> None:
    table = sketches.table(SketchExperiment.read(write(tmp_path)))
    heads = [column.title for column in table.columns]
    assert heads == ["Method", "From", "mAP", "mAP@200", "P@200", "Seconds"]
    ours, _, *theirs = texts(table)
    assert ours[:3] == ["triplet", "run here", "30.50 ± 0.71 (0.50)"]
    published = {row[0]: row[1:] for row in theirs}
    position = "published: SwAMP, table 3"
    assert published["SwAMP"] == [position, "40.32", "51.94", "40.81", "-"]
    assert published["ZSIH"] == [position, "25.4", "-", "-", "-"]


def test_another_data_set_has_no_published_rows(tmp_path: Path) -> None:
    result = SketchExperiment.read(write(tmp_path, dataset="made up"))
    assert [row[1] for row in texts(sketches.table(result))] == ["run here", "run here"]


def test_every_metric_is_compared_seed_by_seed(tmp_path: Path) -> None:
    message = sketches.view(SketchExperiment.read(write(tmp_path))).differences
    assert message[0].startswith(
        "SwAMP against triplet, mAP: +6.00 (95% interval 6.00 to 6.00): better"
    )
    assert "P@200: +0.00" in message[2] and "not decided" in message[2]
    without = SketchExperiment.read(write(tmp_path, baseline=None))
    assert sketches.view(without).differences == []


def test_the_page_has_a_section_for_them(tmp_path: Path) -> None:
    write(tmp_path, about="<b>what</b>")
    pages = page.render(AllResults(runs=[], sketches=SketchExperiment.read_all(tmp_path)))
    assert list(pages) == ["index.html", "pages/other-experiments.html"]
    shown = pages["pages/other-experiments.html"]
    assert 'id="sketches"' in shown and "&lt;b&gt;what&lt;/b&gt;" in shown
    assert 'id="synthetic"' not in shown
