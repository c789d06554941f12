"""Registry and presets against each other: every preset builds, every method has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from manymatch.config.recipe import read_recipe
from manymatch.methods import METHODS, build_method, vocabulary_of

PRESETS = sorted((Path(__file__).parents[2] / "presets").glob("*/*.yaml"))


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_preset_builds_its_method(path, vocabulary):
    recipe = read_recipe(path)
    model = without_files(recipe.model)
    words = vocabulary_of(recipe.method, model, vocabulary)
    build_method(recipe.method, model, vocabulary=words, feature_width=8)


def without_files(model):
    """The settings with GloVe's file, which is nowhere here, left out: the package serves."""
    return {
        key: without_files(value) if isinstance(value, dict) else value
        for key, value in model.items()
        if key != "glove_file"
    }


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_preset_says_how_it_is_launched(path):
    stage = "warm_evaluate" if read_recipe(path).warm_start else "evaluate"
    assert f"dvc repro {stage}@{path.parent.name}-{path.stem}" in path.read_text()


@pytest.mark.parametrize("dataset", ["scenes", "flickr8k"])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_preset(dataset, name):
    recipes = [read_recipe(path) for path in PRESETS if path.parent.name == dataset]
    assert name in {recipe.method for recipe in recipes}
