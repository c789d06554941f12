"""Shards of a few made-up images, written once."""

import pytest
from tiny_data import make_data

from manymatch.batch.vocabulary import Vocabulary
from manymatch.datasets.fetching import transfer


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """24 training images of one to four regions with boxes, in shards of ten. Do not change it."""
    data = make_data(tmp_path_factory.mktemp("tiny"), boxes=True, variable=True)
    data.write_shards()
    return data


@pytest.fixture(scope="session")
def sharded(tmp_path_factory):
    """48 training images in twelve shards. Do not change them."""
    sizes = {"train": 48, "validation": 8, "test": 8}
    data = make_data(tmp_path_factory.mktemp("sharded"), sizes, variable=True, width=24)
    data.write_shards(images_per_shard=4)
    return data


@pytest.fixture(scope="session")
def vocabulary(tiny):
    return Vocabulary.load(tiny.vocabulary)


@pytest.fixture
def away(tmp_path, monkeypatch, one_thread):
    """A current folder for the cache of shards at a URL, and attempts without pauses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(transfer, "_PAUSES", (0.0, 0.0, 0.0))
