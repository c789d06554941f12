"""What the tests of experiments share: a tiny data set with features, and runs in this process."""

import shutil
from pathlib import Path

import pytest
from one_by_one import run_one_by_one
from tiny_checkout import Checkout, make_checkout
from tiny_data import make_data

from manymatch.config.layout import Layout


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    made = make_data(tmp_path_factory.mktemp("tiny"), width=12)
    made.write_shards()
    return made


@pytest.fixture
def worked(monkeypatch):
    return run_one_by_one(monkeypatch)


@pytest.fixture(scope="session")
def _made(tmp_path_factory):
    root = tmp_path_factory.mktemp("checkout")
    make_checkout(root, tmp_path_factory.mktemp("work"))
    return root


@pytest.fixture
def checkout(_made, tmp_path, one_thread):
    """A checkout of its own for each test."""
    return Checkout(Layout(Path(shutil.copytree(_made, tmp_path / "checkout"))))
