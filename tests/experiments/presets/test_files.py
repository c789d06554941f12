"""The experiments on presets that come with the project: every point builds, every file runs."""

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
from manymatch.experiments.plan import points
from manymatch.experiments.presets.experiment import preset_of
from manymatch.experiments.presets.plan import PresetPlan, datasets
from manymatch.methods import build_method, check_model, vocabulary_of
from manymatch.methods.shared.method import Embeddings
from manymatch.reporting.published import ABLATION_METRICS
from manymatch.similarities.set_similarity import SetSimilarity, SimilaritySettings

ROOT = Path(__file__).parents[3]
FILES = [
    path
    for path in sorted((ROOT / "experiments").glob("*.yaml"))
    if read_yaml(path).get("experiment", "presets") == "presets"
]
BUILT = [pytest.param(path, marks=[pytest.mark.slow] * ("bert" in path.stem)) for path in FILES]
METHOD_TABLES = ("scenes-study", "flickr8k-study")
LAYOUT = Layout(ROOT)
STATED = {path.stem: validate(PresetPlan, read_yaml(path), str(path)) for path in FILES}


def presets_of(name: str, dataset: str | None = None, **settings: object) -> dict[str, Preset]:
    """The presets of the points by label, as `manymatch experiment` makes them."""
    plan = plan_of(LAYOUT.experiment(name), dataset=dataset, settings=settings)
    return {point.label: preset_of(LAYOUT, plan, point, 0) for point in points(plan)}


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


def test_pvse_with_maxmatch_is_the_published_preset() -> None:
    part = presets_of("maxmatch-pvse", "flickr30k")["PVSE + MaxMatch"]
    path = LAYOUT.presets / "flickr30k" / "maxmatch_pvse_resnet152_bigru.yaml"
    published = read_preset(path)
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


def encoding_cost(preset: Preset, change: dict[str, int]) -> int:
    """Multiply-adds of encoding 36 regions and 12 words, of size 300."""
    text = {**preset.model["text"], "word_vectors": "learned", "glove_file": None, "word_size": 300}
    model = {**preset.model, **change, "text": text}
    words = Vocabulary([*Vocabulary.SPECIAL, "a", "dog"])
    method: Any = build_method(preset.method, model, vocabulary=words, feature_width=2048).eval()
    regions, read = torch.zeros(1, 36, 2048), torch.full((1, 12), len(words) - 1)
    sides = (
        (
            method.encode_images,
            SimpleNamespace(
                features=regions, region_padding=all_real(1, 36, regions.device), boxes=None
            ),
        ),
        (
            method.encode_texts,
            SimpleNamespace(words=read, word_padding=padded_sequences(torch.tensor([12]), 12)),
        ),
    )
    return sum(
        multiply_adds(lambda encode=encode, batch=batch: encode(batch).vectors)
        for encode, batch in sides
    )


@pytest.mark.parametrize("path", BUILT, ids=lambda path: path.stem)
def test_every_point_has_a_preset_that_its_method_takes(path: Path) -> None:
    plan = plan_of(path)
    presets = [preset_of(LAYOUT, plan, point, plan.seeds[0]) for point in points(plan)]
    words = Vocabulary([*Vocabulary.SPECIAL, "a", "dog"])
    for preset in presets:
        vocabulary = vocabulary_of(preset.method, preset.model, words)
        wide = preset.model.get("size", 0) > 10_000  # 6 GB of weights
        with torch.device("meta" if wide else "cpu"):
            build_method(preset.method, preset.model, vocabulary=vocabulary, feature_width=8)
    assert len({preset.to_yaml() for preset in presets}) == len(presets)


def test_a_file_says_how_it_is_run() -> None:
    for path in FILES:
        assert f"manymatch experiment experiments/{path.name}\n" in path.read_text()
        assert STATED[path.stem].about


@pytest.mark.parametrize("name", METHOD_TABLES)
def test_the_tables_of_methods_hold_every_method_several_times(name: str) -> None:
    plan = plan_of(LAYOUT.experiment(name))
    presets = [preset_of(LAYOUT, plan, point, 0) for point in points(plan)]
    assert [preset.method for preset in presets] == list(plan.over["preset"])
    assert {preset.method for preset in presets} == set(NAMES) - set(CLIP_METHODS)
    assert len(plan.seeds) >= 3 and name.startswith(plan.dataset)
