"""The experiments that come with the project: every point builds, every file runs.

`presets/test_papers.py` has the settings that the papers print.
"""

from functools import cache
from pathlib import Path

import pytest
import torch
from plans import plan_of
from small_methods import CLIP_METHODS, NAMES

from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.layout import Layout
from manymatch.config.preset import read_preset
from manymatch.config.strict import read_yaml, validate
from manymatch.experiments.costs.timing import similarity_operations
from manymatch.experiments.grid import experiment_of_file, points
from manymatch.experiments.presets import PresetPlan, datasets, preset_of
from manymatch.methods import build_method, vocabulary_of
from manymatch.methods.shared.method import Embeddings
from manymatch.reporting.published import ABLATION_METRICS, published_results
from manymatch.similarities.set_similarity import SetSimilarity, SimilaritySettings

ROOT = Path(__file__).parents[2]
LAYOUT = Layout(ROOT)
FILES = {
    path.stem: experiment_of_file(path, LAYOUT)
    for path in sorted((ROOT / "experiments").glob("*.yaml"))
}
STATED = {
    name: validate(PresetPlan, read_yaml(LAYOUT.experiment(name)), name)
    for name, experiment in FILES.items()
    if experiment.kind == "presets"
}
TAKEN = set()
"""The methods and their settings that a test has built: most points vary the training."""
BUILT = [pytest.param(name, marks=[pytest.mark.slow] * ("bert" in name)) for name in STATED]


@cache
def settings_of(name):
    """The settings of each point, as `manymatch experiment` makes them: for presets, the preset."""
    return [FILES[name].settings(point, 0) for point in points(FILES[name].plan)]


def presets_of(name, dataset=None):
    """The presets of the points by label, as `manymatch experiment` makes them."""
    plan = plan_of(LAYOUT.experiment(name), dataset=dataset)
    return {point.label: preset_of(LAYOUT, plan, point, 0) for point in points(plan)}


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_how_it_is_run_and_its_points_differ(name):
    experiment = FILES[name]
    assert f"manymatch experiment experiments/{name}.yaml\n" in LAYOUT.experiment(name).read_text()
    assert experiment.plan.about
    assert len({str(settings) for settings in settings_of(name)}) == len(points(experiment.plan))
    if experiment.kind == "sketches":
        assert experiment.plan.dataset in {result.dataset for result in published_results()}
    if experiment.kind != "presets":
        return
    stated = STATED[name]
    for dataset in {*datasets(stated), *stated.published} - {stated.dataset}:
        presets = presets_of(name, dataset)
        assert len({preset.to_yaml() for preset in presets.values()}) == len(presets) > 1, dataset
        if dataset in {"scenes", "flickr8k"}:
            assert all(preset.setting == "small-scale" for preset in presets.values())
    for dataset, table in stated.published.items():
        plan = plan_of(LAYOUT.experiment(name), dataset=dataset)
        for point in points(plan):
            preset = point.settings.get("preset", plan.preset)
            own = read_preset(LAYOUT.presets / dataset / f"{preset}.yaml").setting
            assert preset_of(LAYOUT, plan, point, 0).setting == own
        assert table in plan.about
        if name in ABLATION_METRICS:
            assert table == ", ".join(ABLATION_METRICS[name][:2])


@pytest.mark.parametrize("name", BUILT)
def test_every_point_has_a_preset_that_its_method_takes(name):
    words = Vocabulary([*Vocabulary.SPECIAL, "a", "dog"])
    for preset in settings_of(name):
        if (model := (preset.method, str(preset.model))) in TAKEN:
            continue
        vocabulary = vocabulary_of(preset.method, preset.model, words)
        with torch.device("meta"):  # without weights, some of which are 6 GB
            build_method(preset.method, preset.model, vocabulary=vocabulary, feature_width=8)
        TAKEN.add(model)


NOT_SEARCHED = {"pcmepp"}
"""Methods that came after the searches of the studies: they have no tuned preset."""


@pytest.mark.parametrize("name", ["scenes-study", "flickr8k-study"])
def test_the_tables_of_methods_hold_every_method_several_times(name):
    methods = [preset.method for preset in presets_of(name).values()]
    plan = FILES[name].plan
    assert methods == list(plan.over["preset"])
    assert len(methods) == len({*methods})
    assert {*methods} | NOT_SEARCHED == {*NAMES} - {*CLIP_METHODS}
    assert len(plan.seeds) >= 3 and name.startswith(plan.dataset)


def test_vse_infinity_has_the_size_at_which_its_similarity_costs_what_dives_does():
    wide = max(preset.model["size"] for preset in presets_of("vse_infinity-size").values())
    dive = read_preset(LAYOUT.presets / "flickr30k" / "dive_butd_bigru.yaml").model
    sizes = {"cosine": (1, wide), "smooth_chamfer": (dive["sets"]["size"], dive["size"])}
    for name, (elements, size) in sizes.items():
        similarity = SetSimilarity(SimilaritySettings(name=name))
        sets = Embeddings(torch.ones(1, elements, size))
        score = lambda x, y, of=similarity: of(x.vectors, y.vectors)  # noqa: E731
        assert similarity_operations(score, sets, sets) == 16_384
