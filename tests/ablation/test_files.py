"""The ablations that come with the project: each point builds, each file says how to run it."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_methods import NAMES, OF_CLIPS

from manymatch.ablation.plan import points, read_plan
from manymatch.ablation.recipes import recipe_of
from manymatch.datasets.vocabulary import Vocabulary
from manymatch.methods import build_method, vocabulary_of

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "ablations").glob("*.yaml"))
METHOD_TABLES = ("scenes-methods", "flickr8k-methods")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_point_has_a_recipe_that_its_method_takes(path: Path) -> None:
    plan = read_plan(path)
    recipes = [recipe_of(ROOT / "presets", plan, point, plan.seeds[0]) for point in points(plan)]
    words = Vocabulary([*Vocabulary.SPECIAL, "a", "dog"])
    for recipe in recipes:
        vocabulary = vocabulary_of(recipe.method, recipe.model, words)
        build_method(recipe.method, recipe.model, vocabulary=vocabulary, feature_width=8)
    assert len({recipe.to_yaml() for recipe in recipes}) == len(recipes)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_says_how_it_is_run(path: Path) -> None:
    assert f"manymatch ablate --file ablations/{path.name}" in path.read_text()
    assert read_plan(path).about


@pytest.mark.parametrize("name", METHOD_TABLES)
def test_the_tables_of_methods_hold_every_method_three_times(name: str) -> None:
    plan = read_plan(ROOT / "ablations" / f"{name}.yaml")
    recipes = [recipe_of(ROOT / "presets", plan, point, 0) for point in points(plan)]
    assert [recipe.method for recipe in recipes] == list(plan.over["preset"])
    assert {recipe.method for recipe in recipes} == set(NAMES) - set(OF_CLIPS)
    assert len(plan.seeds) == 3 and name.startswith(plan.dataset)
