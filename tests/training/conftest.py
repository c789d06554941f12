"""A tiny dataset and a tiny method, trained in a fraction of a second an epoch."""

import pytest
from tiny_data import make_data
from tiny_run import Run


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """48 training images. Do not change it."""
    sizes = {"train": 48, "validation": 16, "test": 8}
    data = make_data(tmp_path_factory.mktemp("tiny"), sizes, variable=True, width=24)
    data.write_shards()
    return data


@pytest.fixture(autouse=True)
def _one_thread(one_thread):
    """Every training is on one core."""


@pytest.fixture
def new_run(tmp_path, tiny):
    """A run of that name on the tiny data."""
    return lambda name: Run(tmp_path / name, tiny)
