"""VSE++'s own terms."""

from __future__ import annotations

import torch
from small_methods import encode

from manymatch.losses.contrastive import info_nce
from manymatch.losses.triplets import triplet


def test_vsepp_sums_over_all_negatives_in_its_first_epoch(build, make_batch):
    method, batch = build("vsepp"), make_batch(range(5))
    images, texts = encode(method, batch)
    scores = method.score(images, texts)
    for epoch, mining in ((0, "all"), (1, "hardest"), (2, "hardest")):
        method.start_epoch(epoch)
        expected = triplet(scores, batch.image_index, 0.2, mining)
        torch.testing.assert_close(method.loss(images, texts, batch)["triplet"], expected)


def test_vsepp_can_take_info_nce(build, make_batch):
    method, batch = (
        build("vsepp", {"objective": "info_nce", "temperature": 0.1}),
        make_batch([0, 1]),
    )
    images, texts = encode(method, batch)
    expected = info_nce(method.score(images, texts), batch.image_index, 0.1)
    torch.testing.assert_close(method.loss(images, texts, batch), {"info_nce": expected})
