"""What the tests of studies share: a tiny data set with features."""

from __future__ import annotations

import pytest
from tiny_data import TinyData, make_data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> TinyData:
    made = make_data(tmp_path_factory.mktemp("tiny"), width=12)
    made.write_shards()
    return made
