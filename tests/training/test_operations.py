"""The operations of a training, which `plan` counts before anything runs."""

from pathlib import Path

import hub_models
import pytest
import torch

from manymatch.batch.padding import sequences
from manymatch.config.galleries import IMAGES, TRAINING_CAPTIONS
from manymatch.config.preset import Preset, read_preset
from manymatch.features import SHAPES
from manymatch.networks.layers.gru import BiGRU
from manymatch.training.operations import WORDS, _shapes_alone, multiply_adds, training_operations
from manymatch.util.errors import ConfigError

ROOT = Path(__file__).parents[2]
PRESETS = [
    "coco/pcmepp_clip_b16",
    *sorted(
        f"flickr30k/{path.stem}"
        for path in (ROOT / "presets" / "flickr30k").glob("*.yaml")
        if "resnext101" not in path.stem  # the count of this network takes a quarter of a minute
    ),
]
NOT_COUNTED = {"coco/pcmepp_clip_b16": "config.json of openai/clip-vit-base-patch16 is on the hub"}
"""Presets whose operations are not known here, and why."""


def counted(name, **overrides):
    preset = read_preset(ROOT / "presets" / f"{name}.yaml", overrides)
    dataset = name.partition("/")[0]
    images, captions = IMAGES[dataset]["train"], TRAINING_CAPTIONS[dataset]
    return training_operations(preset, images, captions, SHAPES.get(preset.features))


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_has_a_number_or_a_reason(name):
    if name in NOT_COUNTED:
        with pytest.raises(ConfigError, match=NOT_COUNTED[name]):
            counted(name)
    else:
        # The whole network of pictures is counted once, in vsepp_resnet152_gru.
        smaller = {"model.image.cnn.backbone": "resnet50"} if "resnet152_bigru" in name else {}
        assert 0 < counted(name, **smaller).hours < 200


def test_the_count_of_vsepp_is_that_of_its_matrix_products():
    training = counted("flickr8k/vsepp")
    images, captions, width, hidden, size = 32, 5 * 32, 300, 128, 256
    assert (training.epochs, training.steps) == (16, 6_000 // images)
    words, gates = captions * WORDS, 3 * hidden
    # Forward; backward for the inputs and for the weights. The first state of a GRU, a zero, has no
    # gradient.
    read = 2 * (3 * words * width * gates + (3 * words - captions) * hidden * gates)
    pooled = images * 49 * 1280  # the mean of the cells; features have no gradient
    projected = 2 * images * 1280 * size
    compared = 3 * images * captions * size
    products = read + pooled + projected + compared
    assert training.total == 2 * products * 16 * training.steps


@pytest.mark.parametrize("lengths", [[5, 5, 5], [5, 3, 1]])
@pytest.mark.parametrize("directions", ["forward", "average"])
def test_a_gru_on_shapes_alone_and_on_the_processor_has_the_formulas_products(lengths, directions):
    width, size = 7, 4
    real = sequences(torch.tensor(lengths), 5)

    def products(gru, rows, sequences):
        return multiply_adds(lambda: gru(rows, sequences).final.sum().backward())

    made = BiGRU(width, size, directions), torch.ones(3, 5, width, requires_grad=True), real
    counts = [products(*made)]
    if len({*lengths}) == 1:
        with _shapes_alone():
            shapes = BiGRU(width, size, directions), torch.empty(3, 5, width, requires_grad=True)
            counts.append(products(*shapes, real.to("meta")))
    ways, words = 1 + (directions == "average"), sum(lengths)
    forward = ways * words * (width + size) * 3 * size
    assert all(2.5 * forward < count <= 3 * forward for count in counts)


def test_frozen_networks_cost_less_and_parts_of_a_batch_cost_more():
    name, group = "flickr30k/vsepp_resnet152_gru", "training.parameter_groups"
    crop = {"model.cnn.crop": 64, "model.cnn.backbone": "resnet50"}
    thawed, staged, frozen = (
        counted(name, **crop, **{group: [{"match": "^image.cnn.", **how}]}).total
        for how in ({}, {"from_epoch": 150}, {"lr_scale": 0.0})
    )
    assert frozen < staged < thawed < 4 * frozen
    whole, parts = (
        counted("flickr8k/vsepp", **{"training.accumulate": count}).total for count in (1, 2)
    )
    assert whole < parts < 1.5 * whole


def test_what_cannot_be_counted_has_a_reason(tmp_path):
    preset = Preset(method="vsepp", features="mine", model={"word_vectors": "learned"})
    with pytest.raises(ConfigError, match="'mine' is known after the stage 'shards'"):
        training_operations(preset, 1_000, 5_000, None)
    folder, _ = hub_models.save(tmp_path / "model", "vit")
    text = {"word_vectors": "learned"}
    for model, why in ((str(folder), ""), ("not/here", "not/here is on the hub")):
        image = {"encoder": "linear", "backbone": {"model": model}}
        preset = Preset(method="dive", features="x", model={"image": image, "text": text})
        if why:
            with pytest.raises(ConfigError, match=why):
                training_operations(preset, 1_000, 5_000, None)
        else:
            assert training_operations(preset, 1_000, 5_000, None).total > 0


def test_steps_are_those_of_the_batches_that_an_epoch_has():
    preset = Preset(method="vsepp", features="x", model={"word_vectors": "learned"})
    for images, fraction, steps in ((40, 1.0, 1), (199, 1.0, 3), (191, 0.67, 2), (64, 0.01, 1)):
        training = preset.training.model_copy(update={"fraction": fraction})
        part = preset.model_copy(update={"training": training})
        assert training_operations(part, images, images, (4, 8)).steps == steps


def test_hours_are_those_of_the_stated_rate():
    training = counted("flickr8k/vsepp")
    assert training.hours == pytest.approx(training.total / (0.2 * 312e12) / 3600)
