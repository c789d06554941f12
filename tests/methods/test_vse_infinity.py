"""VSE-infinity's own terms."""

from __future__ import annotations

import pytest
import torch
from small_methods import encode
from torch.nn.functional import normalize

from manymatch.losses.contrastive import info_nce
from manymatch.losses.triplets import triplet
from manymatch.util.errors import ConfigError


def test_it_pools_the_encoders_local_features(build, make_batch):
    method, batch = build("vse_infinity").eval(), make_batch([0, 1, 2])
    images, texts = encode(method, batch)
    seen = method.image(batch.features, batch.region_padding)
    read = method.text(batch.words, batch.word_padding)
    pooled = (
        method.pool_regions(seen.local, seen.padding),
        method.pool_words(read.local, read.padding),
    )
    torch.testing.assert_close(images.vectors, normalize(pooled[0], dim=2))
    torch.testing.assert_close(texts.vectors, normalize(pooled[1], dim=2))


def test_the_first_epoch_has_all_negatives(build, make_batch):
    method, batch = build("vse_infinity", {"margin": 0.3}), make_batch(range(5))
    images, texts = encode(method, batch)
    scores = method.score(images, texts)
    for epoch, mining in ((0, "all"), (1, "hardest")):
        method.start_epoch(epoch)
        expected = {"triplet": triplet(scores, batch.image_index, 0.3, mining)}
        torch.testing.assert_close(method.loss(images, texts, batch), expected)


def test_it_can_take_info_nce(build, make_batch):
    method = build("vse_infinity", {"objective": "info_nce", "temperature": 0.1})
    batch = make_batch([0, 1])
    images, texts = encode(method, batch)
    expected = {"info_nce": info_nce(method.score(images, texts), batch.image_index, 0.1)}
    torch.testing.assert_close(method.loss(images, texts, batch), expected)


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
