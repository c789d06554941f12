"""Small untrained models, by the score that they rank by."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from made_galleries import SCORES, MakeModel

import manymatch
from manymatch import Model


@pytest.fixture(scope="session")
def small_model(make_model: Callable[..., Path]) -> MakeModel:
    """The model of a score in `SCORES`, with fresh weights."""

    @cache
    def made(score: str) -> Model:
        method, settings = SCORES[score]
        return manymatch.load(make_model(method, settings=settings), "cpu")

    return made
