"""Untrained models on the tiny data set, laid out as in a checkout."""

import pytest
from untrained import save_untrained

METHODS = ("vse_infinity", "dive", "msrm", "cora")


@pytest.fixture(scope="session")
def sources(data):
    return [
        (save_untrained(data.folder / "models" / name, data, name), data.shards) for name in METHODS
    ]


@pytest.fixture
def output(tmp_path):
    return tmp_path / "efficiency" / "tiny.json"
