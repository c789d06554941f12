"""Tuning: the best trial, and the mark of a search that still improves."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_results import tuning, written

from manymatch.results.tuning import Tuning
from manymatch.util.errors import DataError


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
    search = Tuning.model_validate(tuning(rsums))
    assert (search.best, search.still_improves) == (best, improves)
    assert [rsum for _, rsum in search.best_so_far] == curve
    assert search.best_so_far[-1][0] == len(rsums)


def test_a_search_without_a_complete_trial_is_no_result(tmp_path: Path) -> None:
    path = written(tmp_path / "tuning/scenes/vsepp.json", tuning([-1.0, None]))
    with pytest.raises(DataError, match=r"no trial is complete.*manymatch tune scenes vsepp"):
        Tuning.read(path)
