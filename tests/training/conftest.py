"""A tiny dataset and a tiny method, trained in a fraction of a second an epoch."""

import pytest
import torch
from small_methods import small
from tiny_data import make_data
from tiny_run import Run

from manymatch.batch.vocabulary import Vocabulary
from manymatch.methods import build_method
from manymatch.training.data import Data


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """48 training images. Do not change it."""
    sizes = {"train": 48, "validation": 16, "test": 8}
    data = make_data(tmp_path_factory.mktemp("tiny"), sizes, variable=True, width=24)
    data.write_shards()
    return data


@pytest.fixture(scope="session")
def data(tiny):
    """The tiny data as a training has them."""
    return Data(tiny.shards, Vocabulary.load(tiny.vocabulary))


@pytest.fixture(scope="session")
def built(data):
    """A small method with fresh weights, in its second epoch."""

    def build(name, seed=0):
        torch.manual_seed(seed)
        words = data.vocabulary
        method = build_method(name, small(name), vocabulary=words, feature_width=24)
        method.start_epoch(1)
        method.start_step(1.0)
        return method

    return build


@pytest.fixture(autouse=True)
def _one_thread(one_thread):
    """Every training is on one core."""


@pytest.fixture
def new_run(tmp_path, tiny):
    """A run of that name on the tiny data."""
    return lambda name: Run(tmp_path / name, tiny)
