"""The spaCy model, loaded once."""

from __future__ import annotations

import pytest
from spacy.language import Language

from manymatch.scene_graphs.parser import load_model


@pytest.fixture(scope="session")
def model() -> Language:
    return load_model("en_core_web_sm")
