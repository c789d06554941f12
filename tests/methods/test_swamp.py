"""SwAMP's own terms."""

import copy

import torch
from small_methods import encode
from torch.nn.functional import normalize

from manymatch.losses.triplets import triplet

HEADS, PROTOTYPES, SIZE = 3, 2, 8


def test_an_embedding_is_what_all_queries_of_all_heads_read(build, make_batch):
    """PAR, repeated for each head and concatenated, with one set of queries for both modalities."""
    method, batch = build("swamp", {"heads": HEADS}).eval(), make_batch([0, 1, 2])
    images, texts = encode(method, batch)
    heads = method.read.queries.unflatten(0, (HEADS, PROTOTYPES))
    seen = method.image(batch.features, batch.region_padding)
    words = method.text(batch.words, batch.word_padding)
    for result, encoded in ((images, seen), (texts, words)):
        assert result.vectors.shape[1:] == (1, HEADS * PROTOTYPES * SIZE)
        for row, local, mask in zip(
            result.vectors, encoded.local, encoded.padding.mask, strict=True
        ):
            parts = []
            for query in (query for head in heads for query in head):
                units = normalize(local[mask], dim=1)
                weights = (units @ query / 0.5).softmax(0)
                parts.append(sum(w * x for w, x in zip(weights, units, strict=True)))
            torch.testing.assert_close(row[0], normalize(torch.cat(parts), dim=0))


def test_every_caption_is_a_pair_with_its_image(build, make_batch):
    method, batch = build("swamp", {"weight": 0.5, "margin": 0.3}), make_batch([0, 1, 2])
    labels = copy.deepcopy(method.labels)
    images, texts = encode(method, batch)
    result = method.loss(images, texts, batch)
    expected = {
        "triplet": 7 * triplet(method.score(images, texts), batch.image_index, 0.3),
        "swapped": 0.5 * labels(images.vectors[batch.image_index, 0], texts.vectors[:, 0]),
    }
    torch.testing.assert_close(result, expected)
    assert int(method.labels.images.queue.filled) == len(batch.image_index) == 7
