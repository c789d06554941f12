"""Registry and presets against each other: every preset builds and learns, every method has one."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from made_clips import write_word2vec
from small_methods import WIDTH, losses

from manymatch.batch.padding import padded_rows
from manymatch.config import preset as presets
from manymatch.methods import build_method, check_model, vocabulary_of
from manymatch.networks.backbones import resnet
from manymatch.training.optimizer import make_optimizer

FOLDER = Path(__file__).parents[2] / "presets"
PRESETS = sorted({path.resolve() for path in FOLDER.glob("*/*.yaml")})
SIDE = 32
"""Side of the pictures that CNNs see here."""
SIZE = 64
"""Width of all embeddings (`sets.size` is the number of elements)."""
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


read_preset = cache(presets.read_preset)


@pytest.fixture(autouse=True)
def few_word_vectors(vocabulary, tmp_path, monkeypatch):
    """A file of word2vec's with vectors of some words, in place of those that are not here."""
    file = tmp_path / "words.bin"
    write_word2vec(file, vocabulary.words[4:], NARROW["word_size"])
    monkeypatch.setitem(NARROW, "word2vec_file", str(file))


def small(settings):
    """All of a method's settings, but narrow layers, few classes, and nothing that is nowhere here:
    GloVe's package serves for its file, and a small network of random weights for a trained one."""
    narrow = {}
    for key, value in settings.items():
        if key == "cnn" and value:
            narrow[key] = {**value, "backbone": "resnet50", "weights": "random", "crop": SIDE}
        elif isinstance(value, dict):
            narrow[key] = small(value)
        else:
            narrow[key] = value if value is None else NARROW.get(key, value)
    return narrow


def small_model(preset):
    return small(check_model(preset.method, preset.model).model_dump())


def kind_of(value):
    """Numbers of a kind are all the same; 0 and null turn a part off."""
    if isinstance(value, dict):
        return {key: kind_of(part) for key, part in value.items()}
    return bool(value) if value is None or isinstance(value, int | float) else value


def kinds():
    """One preset of those that differ in nothing but numbers and data, and one of pixels of each
    method. Backbones of the hub have tests of their own (test_backbones)."""
    first = {}
    for path in PRESETS:
        preset = read_preset(path)
        if preset.model.get("image", {}).get("backbone"):
            continue
        pixels = preset.features.startswith("pixels")
        groups = [group.match for group in preset.training.parameter_groups]
        kind = (preset.method, pixels or [kind_of(small_model(preset)), groups])
        marks = [pytest.mark.slow] if pixels else []
        case = pytest.param(path, id=f"{path.parent.name}-{path.stem}", marks=marks)
        first.setdefault(json.dumps(kind, sort_keys=True, default=str), case)
    return first.values()


@pytest.mark.parametrize("path", kinds())
def test_a_preset_takes_a_training_step(path, vocabulary, make_batch, monkeypatch):
    monkeypatch.setitem(resnet.DEPTHS, "resnet50", [1, 1, 1, 1])
    preset = read_preset(path)
    model, batch = {**small_model(preset), "size": SIZE}, make_batch(range(3))
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
    loss = torch.stack(list(losses(method, batch).values())).sum()
    assert loss.isfinite()
    loss.backward()
    if preset.training.clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(method.parameters(), preset.training.clip_norm)
    optimizer.step()
    pairs = zip(before, method.parameters(), strict=True)
    assert any(not torch.equal(old, new) for old, new in pairs)


def pictures(batch):
    """The batch with pixels for features."""
    count = len(batch.image_ids)
    values = torch.randint(256, (count, SIDE * SIDE, 3), generator=torch.Generator().manual_seed(0))
    padding = padded_rows(torch.ones(values.shape[:2], dtype=torch.bool))
    return replace(batch, features=values.to(torch.uint8), region_padding=padding)


@pytest.mark.parametrize(
    ("dataset", "name", "scale"),
    [("flickr30k", "dive", 0.05), ("coco", "maxmatch", 0.1)],
)
def test_regions_train_the_image_side_and_the_captions_sets_slowly(
    dataset, name, scale, vocabulary
):
    """DivE, appendix A and released groups; MaxMatch, appendix B. The bi-GRU has the full rate."""
    preset = read_preset(PRESETS[0].parents[1] / dataset / f"{name}_butd_bigru.yaml")
    model = small_model(preset)
    method = build_method(preset.method, model, vocabulary=vocabulary, feature_width=WIDTH)
    optimizer = make_optimizer(method, preset.training, fused=True)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    for parameter_name, parameter in method.named_parameters():
        slow = parameter_name.startswith(("image.encoder.", "image.sets.", "text.sets."))
        assert rates[id(parameter)] == pytest.approx(0.001 * (scale if slow else 1.0))


def test_cora_goes_on_from_conceptual_captions_with_every_part(vocabulary):
    """CORA, table 9: the pre-trained model and the one that starts from it have equal parts."""
    paths = {f"{path.parent.name}/{path.stem}": path for path in PRESETS}
    after = read_preset(paths["flickr30k/cora_butd_bert_conceptual_captions"])
    before = read_preset(paths[after.warm_start.model])
    assert (after.method, after.features) == (before.method, before.features)
    shapes = []
    for preset in (before, after):
        model = small_model(preset)
        words = vocabulary_of(preset.method, model, vocabulary)
        method = build_method(preset.method, model, vocabulary=words, feature_width=WIDTH)
        shapes.append({name: value.shape for name, value in method.state_dict().items()})
    assert shapes[0] == shapes[1]
