"""Small untrained models, by the score that they rank by."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from made_galleries import SCORES, MakeModel
from small_methods import small

import manymatch
from manymatch import Model
from manymatch.config.preset import Preset
from manymatch.methods import build_method
from manymatch.methods.checkpoint import save_model
from manymatch.text.vocabulary import Vocabulary


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """The model of a score in `SCORES`, with fresh weights."""

    @cache
    def made(score: str) -> Model:
        method, settings = SCORES[score]
        model = small(method, settings)
        torch.manual_seed(0)
        vocabulary = Vocabulary([*Vocabulary.SPECIAL, "dog"])
        built = build_method(method, model, vocabulary=vocabulary, feature_width=4)
        folder = tmp_path_factory.mktemp("models") / method
        preset = Preset(method=method, features="lite0", model=model)
        facts: dict[str, Any] = {"extraction": {"backbone": "lite0"}, "parser": "en_core_web_sm"}
        save_model(folder, built, preset, vocabulary, 4, **facts)
        return manymatch.load(folder, "cpu")

    return made
