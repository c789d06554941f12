"""Registry and presets against each other: every preset builds and learns, every method has one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made_clips import write_word2vec
from small_methods import NAMES, OF_CLIPS, WIDTH, losses

from manymatch.config.preset import read_preset
from manymatch.methods import build_method, check_model, vocabulary_of
from manymatch.training.optimizer import make_optimizer

PRESETS = sorted((Path(__file__).parents[2] / "presets").glob("*/*.yaml"))
SIDE = 32
"""Of the pictures that CNNs see here."""
SIZE = 64
"""Of all embeddings (`sets.size` is how many elements there are)."""
NARROW = {
    "attention_size": SIZE,
    "concept_size": 16,
    "glove_file": None,
    "n_classes": 8,
    "n_prototypes": 3,
    "queue": 16,
    "word_size": 16,
}
"""Sizes are the least of what a preset is; at these, its kinds of layers and losses cost little."""


@pytest.fixture(autouse=True)
def few_word_vectors(vocabulary, tmp_path, monkeypatch):
    """A file of word2vec's with vectors of some words, in place of those that are not here."""
    file = tmp_path / "words.bin"
    write_word2vec(file, vocabulary.words[4:], NARROW["word_size"])
    monkeypatch.setitem(NARROW, "word2vec_file", str(file))


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_preset_takes_two_training_steps(path, vocabulary, make_batch):
    preset = read_preset(path)
    settings = check_model(preset.method, preset.model).model_dump()
    model, batch = {**small(settings), "size": SIZE}, make_batch(range(4))
    pixels = bool({**model, **model.get("image", {})}.get("cnn"))
    batch = pictures(batch) if pixels else batch
    words = vocabulary_of(preset.method, model, vocabulary)
    torch.manual_seed(0)
    method = build_method(
        preset.method, model, vocabulary=words, feature_width=3 if pixels else WIDTH
    )
    optimizer = make_optimizer(method, preset.training, fused=True)
    before = [parameter.clone() for parameter in method.parameters()]
    method.start_step(1.0)
    for _ in range(2):
        loss = torch.stack(list(losses(method, batch).values())).sum()
        assert loss.isfinite()
        optimizer.zero_grad()
        loss.backward()
        if preset.training.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(method.parameters(), preset.training.clip_norm)
        optimizer.step()
    pairs = zip(before, method.parameters(), strict=True)
    assert any(not torch.equal(old, new) for old, new in pairs)


def small(settings):
    """All of a method's settings, but narrow layers, few classes, and nothing that is nowhere here:
    GloVe's package serves for its file, and a small network of random weights for a trained one."""
    made = {}
    for key, value in settings.items():
        if key == "cnn" and value:
            made[key] = {**value, "backbone": "resnet50", "weights": "random", "crop": SIDE}
        elif isinstance(value, dict):
            made[key] = small(value)
        else:
            made[key] = value if value is None else NARROW.get(key, value)
    return made


def pictures(batch):
    """The batch with pixels for features."""
    count = len(batch.image_ids)
    values = torch.randint(256, (count, SIDE * SIDE, 3), generator=torch.Generator().manual_seed(0))
    mask = torch.ones(values.shape[:2], dtype=torch.bool)
    return replace(batch, features=values.to(torch.uint8), region_mask=mask)


@pytest.mark.parametrize(
    ("dataset", "name", "scale"),
    [
        ("coco", "dive", 0.1),
        ("flickr30k", "dive", 0.05),
        ("coco", "maxmatch", 0.1),
        ("flickr30k", "maxmatch", 0.1),
    ],
)
def test_regions_train_the_image_side_and_the_captions_sets_slowly(
    dataset, name, scale, vocabulary
):
    """DivE, appendix A and released groups; MaxMatch, appendix B. The bi-GRU has the full rate."""
    preset = read_preset(PRESETS[0].parents[1] / dataset / f"{name}_butd_bigru.yaml")
    settings = small(check_model(preset.method, preset.model).model_dump())
    method = build_method(preset.method, settings, vocabulary=vocabulary, feature_width=WIDTH)
    optimizer = make_optimizer(method, preset.training, fused=True)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    for parameter_name, parameter in method.named_parameters():
        slow = parameter_name.startswith(("image.encoder.", "image.sets.", "text.sets."))
        assert rates[id(parameter)] == pytest.approx(0.001 * (scale if slow else 1.0))


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_preset_says_how_it_is_launched(path):
    stage = "warm_evaluate" if read_preset(path).warm_start else "evaluate"
    assert f"dvc repro {stage}@{path.parent.name}-{path.stem}" in path.read_text()


def test_cora_goes_on_from_conceptual_captions_with_every_part(vocabulary):
    """CORA, table 9: the pre-trained model and the one that starts from it have equal parts."""
    paths = {f"{path.parent.name}/{path.stem}": path for path in PRESETS}
    after = read_preset(paths["flickr30k/cora_butd_bert_conceptual_captions"])
    before = read_preset(paths[after.warm_start.model])
    assert (after.method, after.features) == (before.method, before.features)
    shapes = []
    for preset in (before, after):
        settings = small(check_model(preset.method, preset.model).model_dump())
        words = vocabulary_of(preset.method, settings, vocabulary)
        method = build_method(preset.method, settings, vocabulary=words, feature_width=WIDTH)
        shapes.append({name: value.shape for name, value in method.state_dict().items()})
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_preset_of_pixels_drops_no_regions(path):
    preset = read_preset(path)
    assert not (preset.features.startswith("pixels") and preset.augmentation.region_drop)


PLACES = [(name, dataset) for name in NAMES for dataset in ("scenes", "flickr8k")]
CLIPS = [(name, dataset) for name in OF_CLIPS for dataset in ("youcook2", "msrvtt", "lsmdc")]


@pytest.mark.parametrize(
    ("name", "dataset"), [place for place in PLACES if place[0] not in OF_CLIPS] + CLIPS
)
def test_every_method_has_a_preset(name, dataset):
    presets = [read_preset(path) for path in PRESETS if path.parent.name == dataset]
    assert name in {preset.method for preset in presets}
