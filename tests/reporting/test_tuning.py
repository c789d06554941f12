"""Tuning: the best trial, the mark of a search that still improves, and the section."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from report_pages import pages_of, section_of

from manymatch.results.tuning import Tuning
from manymatch.util.errors import DataError


def made(rsums: list[float | None], preset: str = "vsepp", **change: Any) -> dict[str, Any]:
    """A search whose trials have these rsums; None: the trial diverged. A negative rsum is that of
    a pruned trial."""
    trials = [
        {
            "state": "diverged" if rsum is None else "pruned" if rsum < 0 else "complete",
            "settings": {"training.optimizer.lr": 0.001 * (number + 1)},
            "rsum": None if rsum is None else abs(rsum),
            "epochs": 8,
            "seconds": 90.0,
        }
        for number, rsum in enumerate(rsums)
    ]
    names = {"dataset": "scenes", "preset": preset, "method": "vsepp"}
    budget = {"trials_allowed": len(rsums), "hours_allowed": None, "set": {}}
    return {**names, **budget, "trials": trials, **change}


@pytest.mark.parametrize(
    ("rsums", "best", "improves", "curve"),
    [
        ([50.0, 60.0, -99.0, 60.0], 1, False, [50.0, 60.0, 60.0, 60.0]),
        ([None, 50.0, 40.0, 70.0], 3, True, [50.0, 50.0, 70.0]),
        ([50.0], 0, False, [50.0]),
    ],
)
def test_the_best_trial_is_complete_and_may_come_late(
    rsums: list[float | None], best: int, improves: bool, curve: list[float]
) -> None:
    tuning = Tuning.model_validate(made(rsums))
    assert (tuning.best, tuning.still_improves) == (best, improves)
    assert [rsum for _, rsum in tuning.best_so_far] == curve
    assert tuning.best_so_far[-1][0] == len(rsums)


def test_a_search_without_a_complete_trial_is_no_result(tmp_path: Path) -> None:
    path = tmp_path / "tuning" / "scenes" / "vsepp.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(made([-1.0, None])))
    with pytest.raises(DataError, match=r"no trial is complete.*manymatch tune scenes vsepp"):
        Tuning.read(path)


def test_the_page_shows_each_search(reports: Path) -> None:
    for preset, rsums in {"vsepp": [50.0, 60.0, 55.0, 54.0], "dive": [50.0, None, 70.0]}.items():
        tuning = Tuning.model_validate(made(rsums, preset))
        tuning.write(reports / "tuning" / "scenes" / f"{preset}.json")
    section = section_of(pages_of(reports)["scenes-experiments"], "tuning")
    assert section.count("still improves</span>") == 1
    assert "best 70.0 in trial 3" in section and "best 60.0 in trial 2" in section
    assert "training.optimizer.lr" in section


def test_a_data_set_that_has_only_a_search_has_a_page(reports: Path) -> None:
    tuning = Tuning.model_validate(made([50.0], dataset="own"))
    tuning.write(reports / "tuning" / "own" / "vsepp.json")
    assert "best 50.0 in trial 1" in pages_of(reports)["own-experiments"]
