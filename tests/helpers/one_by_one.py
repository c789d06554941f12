"""Replaces worker processes, which start slowly, by one run after the other in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from manymatch.experiments.workers import caught


def run_one_by_one(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let experiments and searches do one run after the other.

    Returns:
        A list to which the label of each run is added when the run starts.
    """
    labels: list[str] = []

    def one_by_one(work: Any, runs: list[Any], *_: Any) -> Iterator[Any]:
        for run in runs:
            labels.append(run.label)
            yield run, caught(work, run)

    monkeypatch.setattr("manymatch.experiments.workers.side_by_side", one_by_one)
    return labels
