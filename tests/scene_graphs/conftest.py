"""The spaCy model, loaded once."""

from __future__ import annotations

from functools import cache

import pytest
from spacy.language import Language

from manymatch.scene_graphs.parser import load_model

LOAD_MODEL = cache(load_model)


@pytest.fixture(scope="session")
def model() -> Language:
    return LOAD_MODEL("en_core_web_sm")


@pytest.fixture(autouse=True)
def loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manymatch.scene_graphs.parse.load_model", LOAD_MODEL)
