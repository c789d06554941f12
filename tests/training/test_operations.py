"""The operations of a training, which `plan` counts before anything runs."""

from pathlib import Path

import hub_models
import pytest

from manymatch.config.galleries import IMAGES, TRAINING_CAPTIONS
from manymatch.config.preset import Preset, read_preset
from manymatch.features import SHAPES
from manymatch.training.operations import WORDS, training_operations
from manymatch.util.errors import ConfigError

ROOT = Path(__file__).parents[2]
PRESETS = ["cora_butd_bigru", "maxmatch_butd_bigru", "pvse_resnet152_bigru", "swamp_butd_bigru"]
"""Presets of Flickr30k with every kind of encoder. Deeper networks take longer to count."""


def counted(name, **overrides):
    preset = read_preset(ROOT / "presets" / f"{name}.yaml", overrides)
    dataset = name.partition("/")[0]
    images, captions = IMAGES[dataset]["train"], TRAINING_CAPTIONS[dataset]
    return training_operations(preset, images, captions, SHAPES.get(preset.features))


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_hours(name):
    smaller = {"model.image.cnn.backbone": "resnet50"} if "resnet152" in name else {}
    assert 0 < counted(f"flickr30k/{name}", **smaller).hours < 200


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
    assert training.hours == pytest.approx(training.total / (0.2 * 312e12) / 3600)


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
    for images, fraction, steps in ((199, 1.0, 3), (191, 0.67, 2)):
        training = preset.training.model_copy(update={"fraction": fraction})
        part = preset.model_copy(update={"training": training})
        assert training_operations(part, images, images, (4, 8)).steps == steps
