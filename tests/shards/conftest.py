"""Shards of a few made-up images, written once."""

import pytest
from tiny_data import make_data

from manymatch.batch.vocabulary import Vocabulary


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """24 training images of one to four regions with boxes, in shards of ten. Do not change it."""
    data = make_data(tmp_path_factory.mktemp("tiny"), boxes=True, variable=True)
    data.write_shards()
    return data


@pytest.fixture(scope="session")
def vocabulary(tiny):
    return Vocabulary.load(tiny.vocabulary)
