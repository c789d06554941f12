"""Small untrained models, whose scores rank made-up embeddings."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from small_methods import small

import manymatch
from manymatch import Model
from manymatch.config.preset import Preset
from manymatch.methods import build_method
from manymatch.methods.checkpoint import save_model
from manymatch.text.vocabulary import Vocabulary

MakeModel = Callable[[str, dict[str, Any]], Model]


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> MakeModel:
    """A model of a method with some settings and fresh weights."""

    @cache
    def made(method: str, settings: str) -> Model:
        torch.manual_seed(0)
        model = small(method, eval(settings))
        vocabulary = Vocabulary([*Vocabulary.SPECIAL, "dog"])
        built = build_method(method, model, vocabulary=vocabulary, feature_width=4)
        folder = tmp_path_factory.mktemp("models") / method
        preset = Preset(method=method, features="lite0", model=model)
        facts = {"extraction": {"backbone": "lite0"}, "parser": "en_core_web_sm"}
        save_model(folder, built, preset, vocabulary, 4, **facts)
        return manymatch.load(folder, "cpu")

    return lambda method, settings: made(method, repr(settings))
