"""The experiments that come with the project: every point builds, every file runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from plans import plan_of
from small_methods import CLIP_METHODS, NAMES

from manymatch.batch.padding import all_real, padded_sequences
from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.layout import Layout
from manymatch.config.preset import Preset, read_preset
from manymatch.config.strict import read_yaml, validate
from manymatch.experiments.costs.cost import multiply_adds, similarity_operations
from manymatch.experiments.grid import experiment_of_file, points
from manymatch.experiments.presets import PresetPlan, datasets, preset_of
from manymatch.methods import build_method, check_model, vocabulary_of
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
BUILT = [pytest.param(name, marks=[pytest.mark.slow] * ("bert" in name)) for name in STATED]


def presets_of(name: str, dataset: str | None = None, **settings: object) -> dict[str, Preset]:
    """The presets of the points by label, as `manymatch experiment` makes them."""
    plan = plan_of(LAYOUT.experiment(name), dataset=dataset, settings=settings)
    return {point.label: preset_of(LAYOUT, plan, point, 0) for point in points(plan)}


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_how_it_is_run_and_its_points_differ(name: str) -> None:
    experiment = FILES[name]
    assert f"manymatch experiment experiments/{name}.yaml\n" in LAYOUT.experiment(name).read_text()
    assert experiment.plan.about
    different = {str(experiment.settings(point, 0)) for point in points(experiment.plan)}
    assert len(different) == len(points(experiment.plan))


@pytest.mark.parametrize("name", STATED)
def test_every_point_has_a_preset_on_every_other_data_set_of_the_file(name: str) -> None:
    for dataset in set(datasets(STATED[name])) - {STATED[name].dataset}:
        presets = presets_of(name, dataset)
        assert len({preset.to_yaml() for preset in presets.values()}) == len(presets) > 1, dataset
        small = dataset in {"scenes", "flickr8k"}
        assert all(preset.setting == "small-scale" for preset in presets.values()) or not small


@pytest.mark.parametrize("name", [name for name, plan in STATED.items() if plan.published])
def test_points_of_a_paper_keep_the_mark_of_their_preset(name: str) -> None:
    for dataset, table in STATED[name].published.items():
        changed = presets_of(name, dataset, **{"training.epochs": 7})
        assert {preset.setting for preset in changed.values()} == {"small-scale"}
        plan = plan_of(LAYOUT.experiment(name), dataset=dataset)
        presets = {p.label: p.settings.get("preset", plan.preset) for p in points(plan)}
        stated = {
            label: read_preset(LAYOUT.presets / dataset / f"{preset}.yaml").setting
            for label, preset in presets.items()
        }
        marks = {label: preset.setting for label, preset in presets_of(name, dataset).items()}
        assert marks == stated
        assert table in plan.about
        if name in ABLATION_METRICS:
            assert table == ", ".join(ABLATION_METRICS[name][:2])


OPEN = """
    cora-graph dive-similarity maxmatch-losses msrm-alpha msrm-gamma msrm-layers msrm-losses
    swamp-appendix swamp-weight
"""
"""Files with points of which the paper leaves something open: see docs/fidelity.md."""


@pytest.mark.parametrize("name", OPEN.split())
def test_points_that_a_paper_leaves_open_are_not_marked_as_the_papers(name: str) -> None:
    assert not STATED[name].published


@pytest.mark.parametrize("name", BUILT)
def test_every_point_has_a_preset_that_its_method_takes(name: str) -> None:
    words = Vocabulary([*Vocabulary.SPECIAL, "a", "dog"])
    for preset in presets_of(name).values():
        vocabulary = vocabulary_of(preset.method, preset.model, words)
        wide = preset.model.get("size", 0) > 10_000  # 6 GB of weights
        with torch.device("meta" if wide else "cpu"):
            build_method(preset.method, preset.model, vocabulary=vocabulary, feature_width=8)


NOT_SEARCHED = {"pcmepp"}
"""Methods that came after the searches of the studies: they have no tuned preset."""


@pytest.mark.parametrize("name", ["scenes-study", "flickr8k-study"])
def test_the_tables_of_methods_hold_every_method_several_times(name: str) -> None:
    methods = [preset.method for preset in presets_of(name).values()]
    plan = FILES[name].plan
    assert methods == list(plan.over["preset"])
    assert sorted(methods) == sorted(set(NAMES) - set(CLIP_METHODS) - NOT_SEARCHED)
    assert len(plan.seeds) >= 3 and name.startswith(plan.dataset)


def test_pvse_with_maxmatch_is_the_published_preset() -> None:
    part = presets_of("maxmatch-pvse", "flickr30k")["PVSE + MaxMatch"]
    published = read_preset(LAYOUT.presets / "flickr30k" / "maxmatch_pvse_resnet152_bigru.yaml")
    models = [check_model(preset.method, preset.model) for preset in (part, published)]
    assert models[0] == models[1]
    assert part.model_copy(update={"model": {}}) == published.model_copy(update={"model": {}})


@pytest.mark.slow
def test_vse_infinity_has_the_size_at_which_it_encodes_at_dives_cost() -> None:
    wide = max(preset.model["size"] for preset in presets_of("vse_infinity-encoding").values())
    presets = LAYOUT.presets / "flickr30k"
    dive = encoding_cost(read_preset(presets / "dive_butd_bigru.yaml"), {})
    path = presets / "vse_infinity_butd_bigru.yaml"
    costs = [encoding_cost(read_preset(path), {"size": size}) for size in (1024, wide)]
    assert costs[0] < 0.3 * dive
    assert costs[1] == pytest.approx(dive, rel=0.01)


def encoding_cost(preset: Preset, change: dict[str, int]) -> int:
    """Multiply-adds of encoding 36 regions and 12 words, of size 300."""
    text = {**preset.model["text"], "word_vectors": "learned", "glove_file": None, "word_size": 300}
    model = {**preset.model, **change, "text": text}
    words = Vocabulary([*Vocabulary.SPECIAL, "a", "dog"])
    method: Any = build_method(preset.method, model, vocabulary=words, feature_width=2048).eval()
    padding = all_real(1, 36, torch.device("cpu"))
    image = SimpleNamespace(features=torch.zeros(1, 36, 2048), region_padding=padding, boxes=None)
    read = torch.full((1, 12), len(words) - 1)
    text = SimpleNamespace(words=read, word_padding=padded_sequences(torch.tensor([12]), 12))
    return multiply_adds(lambda: method.encode_images(image).vectors) + multiply_adds(
        lambda: method.encode_texts(text).vectors
    )


def test_vse_infinity_has_the_size_at_which_its_similarity_costs_what_dives_does() -> None:
    wide = max(preset.model["size"] for preset in presets_of("vse_infinity-size").values())
    dive = read_preset(LAYOUT.presets / "flickr30k" / "dive_butd_bigru.yaml").model
    assert similarity_cost("cosine", 1, wide) == 16_384
    assert similarity_cost("smooth_chamfer", dive["sets"]["size"], dive["size"]) == 16_384


def similarity_cost(name: Any, elements: int, size: int) -> int:
    """Multiply-adds of the similarity of two sets."""
    similarity, sets = (
        SetSimilarity(SimilaritySettings(name=name)),
        Embeddings(torch.ones(1, elements, size)),
    )
    return similarity_operations(lambda x, y: similarity(x.vectors, y.vectors), sets, sets)


def test_swamps_other_experiments_are_those_of_the_paper() -> None:
    """`presets/test_papers.py` has the settings of the points."""
    swamp = FILES["synthetic-swamp"]
    assert len(swamp.plan.seeds) == 5 and swamp.plan.baseline == "contrastive"
    assert swamp.plan.published == {
        "contrastive": {"pair": 84.10, "class": 91.60},
        "SwAMP": {"pair": 90.80, "class": 95.70},
    }
    of = {point.label: swamp.settings(point, 0) for point in points(swamp.plan)}
    assert of["SwAMP"].model_copy(update={"weight": 0.0}) == of["contrastive"]
    known = {result.dataset for result in published_results()}
    for experiment in FILES.values():
        assert experiment.kind != "sketches" or experiment.plan.dataset in known


def test_both_sharp_settings_are_solved_both_ways() -> None:
    experiment = FILES["synthetic-convergence"]
    values = [experiment.settings(point, 0) for point in points(experiment.plan)]
    assert {(one.tau, one.eta, one.rounds, one.tolerance) for one in values} == {
        (tau, eta, *end)
        for tau, eta in ((0.01, 20.0), (0.025, 5.0))
        for end in ((3, None), (None, 1e-4))
    }
