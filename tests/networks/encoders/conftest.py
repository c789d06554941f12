"""Tiny text models of transformers, each saved once."""

from functools import cache

import hub_texts
import pytest


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    return cache(lambda family: hub_texts.save(tmp_path_factory.mktemp(family), family))
