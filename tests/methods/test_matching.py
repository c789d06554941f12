"""The contrastive loss of VSE++, VSE-infinity and SwAMP, and VSE-infinity's pooling."""

import pytest
import torch
from small_methods import encode

from manymatch.losses.contrastive import sigmoid_pairs
from manymatch.losses.triplets import triplet
from manymatch.util.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "settings", "minings"),
    [
        ("vsepp", {}, ["all", "hardest", "hardest"]),
        ("vse_infinity", {"margin": 0.3}, ["all", "hardest"]),
        ("swamp", {"weight": 0.0}, ["hardest", "hardest"]),
        ("swamp", {"weight": 0.0, "all_negatives_epochs": 1}, ["all", "hardest"]),
    ],
)
def test_the_first_epochs_may_have_all_negatives(build, make_batch, name, settings, minings):
    method, batch = build(name, settings), make_batch(range(5))
    images, texts = encode(method, batch)
    scores, pairs = method.score(images, texts), len(batch.image_index) if name == "swamp" else 1
    for epoch, mining in enumerate(minings):
        method.start_epoch(epoch)
        loss = triplet(scores, batch.image_index, settings.get("margin", 0.2), mining)
        torch.testing.assert_close(method.loss(images, texts, batch), {"triplet": pairs * loss})


@pytest.mark.parametrize("name", ["vsepp", "swamp"])
def test_the_sigmoid_loss_learns_its_scale_and_bias(build, make_batch, name):
    method = build(name, {"objective": "sigmoid", "sigmoid_scale": 8.0, "sigmoid_bias": -3.0})
    batch = make_batch([0, 1, 2])
    images, texts = encode(method, batch)
    loss = method.loss(images, texts, batch)["sigmoid"]
    logits = method.score(images, texts) * 8 - 3
    pairs = len(batch.image_index) if name == "swamp" else 1
    torch.testing.assert_close(loss, pairs * sigmoid_pairs(logits, batch.image_index))
    loss.backward()
    assert method.matching.log_scale.grad.abs() > 0
    assert method.matching.bias.grad.abs() > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image": {"encoder": "raw"}}, "image: local features have size 12"),
        ({"text": {"local": "vectors"}}, "text: local features have size 8"),
    ],
)
def test_encoders_that_leave_another_size_are_refused(build, settings, message):
    with pytest.raises(ConfigError, match=message):
        build("vse_infinity", settings)
