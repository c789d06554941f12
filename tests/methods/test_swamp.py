"""SwAMP's own terms."""

import copy

import torch
from small_methods import WIDTH, encode
from torch.nn.functional import normalize

from manymatch.config.preset import Preset, WarmStart
from manymatch.losses.triplets import triplet
from manymatch.model.checkpoint import save_model
from manymatch.training.warm_start import find_source

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


def test_the_contrastive_twin_is_the_same_without_classes(build, make_batch):
    method, twin = build("swamp"), build("swamp", {"weight": 0.0})
    batch = make_batch([0, 1, 2])
    own = method.loss(*encode(method, batch), batch)
    assert set(own) == {"triplet", "swapped"}
    torch.testing.assert_close(twin.loss(*encode(twin, batch), batch), {"triplet": own["triplet"]})
    mine, theirs = dict(method.named_parameters()), dict(twin.named_parameters())
    assert set(mine) - set(theirs) == {"labels.prototypes"}


def test_a_start_from_the_twin_leaves_the_classes_fresh(build, vocabulary, tmp_path):
    twin, method = build("swamp", {"weight": 0.0}, seed=1), build("swamp")
    before = method.labels.prototypes.clone()
    warm = WarmStart(model="scenes/twin", fresh=("^labels[.]",))
    preset = Preset(method="swamp", features="grid", warm_start=warm)
    save_model(tmp_path / "scenes" / "twin", twin, preset, vocabulary, WIDTH)
    find_source(preset, tmp_path).load(method, vocabulary)
    assert torch.equal(method.read.queries, twin.read.queries)
    assert torch.equal(method.labels.prototypes, before)
