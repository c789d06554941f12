"""CORA's own terms."""

from dataclasses import replace

import pytest
import torch
from small_methods import encode

from manymatch.batch.batch import Concepts
from manymatch.losses.contrastive import info_nce
from manymatch.losses.triplets import triplet
from manymatch.util.errors import DataError


def naive_cora(method, images, texts, image_index):
    """The three losses with loops over captions and entities, unweighted."""
    v, t, e = images.vectors[:, 0], texts.vectors[:, 0], texts.entities
    caption = texts.entity_caption.tolist()
    names = texts.entity_names.tolist()
    held = [{a for a in row if a} for row in texts.entity_attributes.tolist()]
    image = [int(image_index[c]) for c in caption]
    s, z = v @ t.T, v @ torch.cat([t, e]).T
    true = torch.zeros(z.shape, dtype=torch.bool)
    for j, i in enumerate(image_index):
        true[i, j] = True
    known = "entity" if texts.known_caption is None else "known"
    said_in, said_names, said = (
        getattr(texts, f"{known}_{part}").tolist() for part in ("caption", "names", "attributes")
    )
    for k in range(len(e)):
        for caption_of_other, name, others in zip(said_in, said_names, said, strict=True):
            if names[k] == name and held[k] <= {*others}:
                true[int(image_index[caption_of_other]), len(t) + k] = True

    def anchored(logits, positive):
        rows = []
        for row, own in zip(logits, positive, strict=True):
            negatives = row[~own].exp().sum()
            rows.append((-(row[own].exp() / (row[own].exp() + negatives)).log()).mean())
        return torch.stack(rows).mean()

    specific = [(0.4 + v[i] @ e[k] - v[i] @ t[caption[k]]).relu() for k, i in enumerate(image)]
    return {
        "hardest": triplet(s, image_index, 0.4),
        "contrastive": anchored(z / 0.5, true) + anchored(z.T / 0.5, true.T),
        "specificity": torch.stack(specific).mean(),
    }


def test_cora_weighs_its_three_losses(build, make_batch):
    method, batch = build("cora", {"temperature": 0.5}), make_batch(range(5))
    images, texts = encode(method, batch)
    expected = naive_cora(method, images, texts, batch.image_index)
    weights = {"hardest": 1.0, "contrastive": 0.25, "specificity": 3.0}
    for epochs, warm_up in ((0.0, 0.0), (0.5, 0.5), (1.0, 1.0), (7.0, 1.0)):
        method.start_step(epochs)
        result = method.loss(images, texts, batch)
        assert set(result) == set(weights)
        for name, weight in weights.items():
            torch.testing.assert_close(result[name], warm_up * weight * expected[name])


def test_a_dropped_object_is_still_true_of_its_image(build, make_batch):
    """Images 0 and 1 lose objects and attributes that captions of the others still have."""
    method, batch = build("cora", {"temperature": 0.5}), make_batch(range(5))
    graphs = batch.graphs
    lost = batch.image_index[graphs.object_caption] < 2
    fewer = replace(
        graphs,
        object_names=graphs.object_names.masked_fill(lost, 7),
        object_attributes=graphs.object_attributes.masked_fill(lost[:, None], 0),
    )
    said = Concepts(  # each object as it was and under its new name
        graphs.object_caption.repeat_interleave(2),
        torch.stack([graphs.object_names, fewer.object_names], 1).flatten(),
        graphs.object_attributes.repeat_interleave(2, 0),
    )
    results = []
    for undropped in (None, said):
        batch = replace(batch, graphs=replace(fewer, undropped=undropped))
        images, texts = encode(method, batch)
        expected = 0.25 * naive_cora(method, images, texts, batch.image_index)["contrastive"]
        results.append(method.loss(images, texts, batch)["contrastive"])
        torch.testing.assert_close(results[-1], expected)
    assert results[0] != results[1]


def test_cora_can_add_info_nce_over_captions(build, make_batch):
    batch = make_batch([0, 1, 2])
    plain, added = build("cora"), build("cora", {"caption_weight": 0.5})
    images, texts = encode(plain.eval(), batch)
    terms = added.loss(images, texts, batch)
    expected = 0.5 * info_nce(plain.score(images, texts), batch.image_index, 0.01)
    torch.testing.assert_close(terms.pop("captions"), expected)
    torch.testing.assert_close(terms, plain.loss(images, texts, batch))


def test_cora_without_the_last_activation_uses_all_directions(build, make_batch):
    batch = make_batch([0, 1, 2])
    objects = {
        kept: build("cora", {"last_activation": kept}).eval().graph(batch.graphs).nodes
        for kept in (True, False)
    }
    assert objects[True].min() == 0 and objects[False].min() < 0
    torch.testing.assert_close(objects[False].relu(), objects[True])


def test_cora_without_graphs_says_so(build, make_batch):
    with pytest.raises(DataError, match="scene graphs"):
        build("cora").encode_texts(replace(make_batch([0]), graphs=None))
