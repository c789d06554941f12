"""A tiny dataset and a tiny method, trained in a fraction of a second an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from tiny_data import TinyData, make_data
from tiny_run import Run


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyData:
    """48 training images. Do not change it."""
    sizes = {"train": 48, "validation": 16, "test": 8}
    data = make_data(tmp_path_factory.mktemp("tiny"), sizes, variable=True, width=24)
    data.write_shards()
    return data


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Sums depend on how many threads share them, and a forked process can have only one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def new_run(tmp_path: Path, tiny: TinyData) -> Callable[[str], Run]:
    """A run of that name on the tiny data."""
    return lambda name: Run(tmp_path / name, tiny)
