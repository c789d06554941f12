"""Untrained models on the tiny data set, laid out as in a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_data import TinyData
from untrained import save_untrained

from manymatch.experiments.costs.efficiency import Source

METHODS = ("vse_infinity", "dive", "msrm", "cora")


@pytest.fixture(scope="session")
def sources(data: TinyData) -> list[Source]:
    return [
        (save_untrained(data.folder / "models" / name, data, name), data.shards) for name in METHODS
    ]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "efficiency" / "tiny.json"
