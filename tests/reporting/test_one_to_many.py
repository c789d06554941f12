"""The figures of one query with many true items, and when they are left out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from made_results import write_trained
from made_sets import set_metrics
from report_pages import edit, pages_of, section_of

NAMES = ("vse_infinity", "dive")


def judge(metrics: dict[str, Any], gain: float) -> None:
    """Give metrics the values of one-to-many; `gain` is that of queries with two true items."""
    for way in metrics["multi"].values():
        way["others"] = 12.25 + gain
        groups = {"least": [1, 2], "queries": [40, 40], "map_at_r": [30.0, 20.0 + gain]}
        way["by_positives"] = groups


def separate(sets: dict[str, Any]) -> None:
    shares = {"together": 70.0, "together_by_chance": 60.5}
    sets["meanings"] = shares | {"apart": 50.0, "apart_by_chance": 45.0}


def test_each_figure_has_the_methods_with_its_values(reports: Path) -> None:
    path = write_trained(reports, "scenes-study", {"preset": [*NAMES]}, seeds=2)

    def change(study: dict[str, Any]) -> None:
        for point in study["points"]:
            sets = point["label"] == "dive"
            for run in point["runs"]:
                judge(run["metrics"], gain=sets * (1.5 + run["seed"]))
                if sets:
                    run["metrics"]["sets"] = set_metrics(4, alive=True)
                    separate(run["metrics"]["sets"])

    edit(path, change)
    edit(reports / "results/scenes/cora.json", lambda metrics: judge(metrics, 0.0))
    page = pages_of(reports)["scenes-one-to-many"]
    others = section_of(page, "others")
    assert others.count(">14.2 ± 0.7<") == others.count(">12.2 ± 0.0<") == 2  # both directions
    assert others.count(">12.2<") == 2, "a run of the leaderboard"
    ambiguity = section_of(page, "ambiguity")
    assert "dive: 2.0 ± 0.7 from 2 true items on (40 queries)" in ambiguity
    assert "vse_infinity:" not in ambiguity and "cora:" not in ambiguity
    meanings = section_of(page, "meanings")
    assert meanings.count(">9.5 ± 0.0<") == 1 and "vse_infinity" not in meanings


def test_an_ensemble_is_no_baseline(reports: Path) -> None:
    results, origins = reports / "results/scenes", reports / "provenance/scenes"
    for preset, gain in (("vse_infinity", 0.0), ("vse_infinity+dive", 4.0), ("dive", 1.5)):
        for folder in (results, origins):
            shutil.copy(folder / "cora.json", folder / f"{preset}.json")
        edit(origins / f"{preset}.json", lambda origin, name=preset: origin.update(preset=name))
        edit(results / f"{preset}.json", lambda metrics, gain=gain: judge(metrics, gain))
    edit(results / "dive.json", lambda metrics: metrics.update(sets=set_metrics(4, alive=True)))
    edit(results / "vse_infinity+dive.json", lambda metrics: metrics.update(rsum=500.0))
    ambiguity = section_of(pages_of(reports)["scenes-one-to-many"], "ambiguity")
    assert "gain over vse_infinity<" in ambiguity and "+dive" not in ambiguity


def test_gains_are_over_the_same_queries(reports: Path) -> None:
    path = write_trained(reports, "scenes-study", {"preset": [*NAMES]})

    def change(study: dict[str, Any]) -> None:
        for point in study["points"]:
            for run in point["runs"]:
                judge(run["metrics"], gain=1.0)
                if point["label"] == "dive":
                    run["metrics"]["sets"] = set_metrics(4, alive=True)
                    for way in run["metrics"]["multi"].values():
                        way["by_positives"]["queries"] = [40, 39]

    edit(path, change)
    ambiguity = section_of(pages_of(reports)["scenes-one-to-many"], "ambiguity")
    assert "from 1 true items on (40 queries)" in ambiguity and "from 2 true" not in ambiguity


def test_results_without_these_values_have_no_such_page(reports: Path) -> None:
    assert not [name for name in pages_of(reports) if "one-to-many" in name]
