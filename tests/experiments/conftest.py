"""What the tests of experiments share: a tiny data set with features, and runs in this process."""

from __future__ import annotations

import pytest
from one_by_one import run_one_by_one
from tiny_data import TinyData, make_data


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> TinyData:
    made = make_data(tmp_path_factory.mktemp("tiny"), width=12)
    made.write_shards()
    return made


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return run_one_by_one(monkeypatch)
