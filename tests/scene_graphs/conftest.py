"""The spaCy model, loaded once."""

from functools import cache

import pytest

from manymatch.scene_graphs.parser import load_model

LOAD_MODEL = cache(load_model)


@pytest.fixture(scope="session")
def model():
    return LOAD_MODEL("en_core_web_sm")


@pytest.fixture(autouse=True)
def loaded_once(monkeypatch):
    monkeypatch.setattr("manymatch.scene_graphs.parse.load_model", LOAD_MODEL)
