"""Small untrained models of every method that takes pictures, and made-up pictures."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from made_galleries import SCORES
from PIL import Image
from small_methods import small

import manymatch
from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.params import Extraction
from manymatch.config.preset import Preset
from manymatch.features.backbone import Sources
from manymatch.features.lite import WIDTH, build
from manymatch.methods import build_method
from manymatch.model.checkpoint import save_model

WORDS = ["a", "red", "bird", "above", "table", "two", "dogs", "dog", "beside", "the", "boat"]


@pytest.fixture(scope="session")
def extraction():
    """The image features of the models, as their training would record them."""
    backbone = build("lite0", Sources(Path(), Extraction()))
    return {
        "backbone": "lite0",
        "preprocessing": backbone.preprocessing,
        "weights_sha256": backbone.weights_sha256,
    }


@pytest.fixture(scope="session")
def make_model(extraction, tmp_path_factory):
    """Write a small model of a method with fresh weights; facts may be replaced."""

    def make(method, features="lite0", settings=None, **facts):
        torch.manual_seed(0)
        vocabulary, model = Vocabulary([*Vocabulary.SPECIAL, *WORDS]), small(method, settings)
        built = build_method(method, model, vocabulary=vocabulary, feature_width=WIDTH)
        preset = Preset(method=method, features=features, model=model)
        known = {"dataset": "scenes", "extraction": extraction, "parser": "en_core_web_sm"}
        folder = tmp_path_factory.mktemp("models") / method
        save_model(folder, built, preset, vocabulary, WIDTH, **known | facts)
        return folder

    return make


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """Five pictures of different sizes and modes."""
    folder = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(0)
    paths = []
    for number, (height, width) in enumerate([(60, 90), (224, 224), (17, 40), (90, 60), (31, 31)]):
        pixels = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
        image = Image.fromarray(pixels).convert("L" if number == 3 else "RGB")
        paths.append(folder / f"{number}.png")
        image.save(paths[-1])
    return paths


@pytest.fixture(scope="session")
def small_model(make_model):
    """The model of a score in `SCORES`, with fresh weights."""

    @cache
    def made(score):
        method, changes = SCORES[score]
        return manymatch.load(make_model(method, settings=changes), "cpu")

    return made
