"""Runs that would go side by side, one by one in this process, where they begin sooner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from manymatch.experiments.ablation.workers import caught


def run_one_by_one(monkeypatch: pytest.MonkeyPatch, place: str) -> list[str]:
    """Replace `side_by_side` where `place` names it; the labels of the jobs as they are done."""
    labels: list[str] = []

    def one_by_one(work: Any, jobs: list[Any], *_: Any) -> Iterator[Any]:
        for job in jobs:
            labels.append(job.label)
            yield job, caught(work, job)

    monkeypatch.setattr(place, one_by_one)
    return labels
