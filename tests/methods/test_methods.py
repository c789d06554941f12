"""What every registered method keeps: contract, padding, learning, seeds; and its own terms."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from manymatch.errors import ConfigError, DataError
from manymatch.losses.info_nce import info_nce
from manymatch.losses.triplet import triplet
from manymatch.methods import METHODS, build_method, method_class
from manymatch.methods.base import Embeddings
from manymatch.shards.batch import name_id

WIDTH = 12
SMALL = {
    "vsepp": {"size": 16, "word_size": 8},
    "cora": {"size": 16, "heads": 4, "word_vectors": "learned", "word_size": 8, "concept_size": 8},
}
VARIANTS = [
    ("vsepp", {}),
    ("vsepp", {"image_encoder": "regions", "image_pooling": "gpo", "text_pooling": "gpo"}),
    ("vsepp", {"image_pooling": "max", "text_pooling": "mean", "directions": "concatenate"}),
    ("vsepp", {"objective": "info_nce", "embedding_dropout": 0.1, "text_pooling": "max"}),
    ("cora", {}),
    ("cora", {"region_attention": False, "edge_form": "code", "warmup_epochs": 0.0}),
    ("cora", {"last_activation": False, "caption_weight": 1.0}),
]
variants = pytest.mark.parametrize(("name", "settings"), VARIANTS)


@pytest.fixture
def build(vocabulary):
    def build(name, settings=None, seed=0):
        torch.manual_seed(seed)
        chosen = SMALL[name] | (settings or {})
        return build_method(name, chosen, vocabulary=vocabulary, feature_width=WIDTH)

    return build


def encode(method, batch):
    return method.encode_images(batch), method.encode_texts(batch)


def train(method, batch, steps=12):
    """Losses of a few full-batch steps."""
    optimizer = torch.optim.AdamW(method.parameters(), lr=5e-3)
    method.start_epoch(1)
    method.start_step(1.0)
    losses = []
    for _ in range(steps):
        loss = sum(method.loss(*encode(method, batch), batch).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@variants
def test_embeddings_keep_the_contract(build, make_batch, name, settings):
    method, batch = build(name, settings), make_batch([0, 1, 2])
    images, texts = encode(method, batch)
    assert images.vectors.shape == (3, 1, 16)
    assert texts.vectors.shape == (7, 1, 16)
    for vectors in (images.vectors, texts.vectors):
        torch.testing.assert_close(vectors.norm(dim=2), torch.ones(vectors.shape[:2]))
    scores = method.score(images, texts)
    assert scores.shape == (3, 7)
    block = method.score(Embeddings(images.vectors[1:2]), Embeddings(texts.vectors[2:5]))
    torch.testing.assert_close(block, scores[1:2, 2:5])
    terms = method.loss(images, texts, batch)
    assert all(term.shape == () and term.isfinite() for term in terms.values())


@variants
def test_a_sample_is_embedded_alike_alone_and_in_any_batch(build, make_batch, name, settings):
    method = build(name, settings)
    encode(method, make_batch(range(8)))  # batch statistics that are not the initial ones
    method.eval()
    with torch.no_grad():
        images, texts = encode(method, make_batch(range(6)))
        first = 0
        for i in range(6):
            image, own = encode(method, make_batch([i]))
            torch.testing.assert_close(image.vectors[0], images.vectors[i], atol=1e-5, rtol=1e-4)
            found = texts.vectors[first : first + len(own)]
            torch.testing.assert_close(own.vectors, found, atol=1e-5, rtol=1e-4)
            first += len(own)


@variants
def test_the_loss_falls(build, make_batch, name, settings):
    losses = train(build(name, settings), make_batch(range(10)))
    assert losses[-1] < 0.8 * losses[0]


@variants
def test_the_same_seed_gives_the_same_numbers(build, make_batch, name, settings):
    batch = make_batch(range(6))
    runs = [train(build(name, settings, seed), batch, steps=3) for seed in (5, 5, 6)]
    assert runs[0] == runs[1] != runs[2]


@variants
def test_every_parameter_learns(build, make_batch, name, settings):
    method, batch = build(name, settings), make_batch(range(6))
    sum(method.loss(*encode(method, batch), batch).values()).backward()
    idle = [n for n, p in method.named_parameters() if p.grad is None]
    assert idle == []


def test_vsepp_sums_over_all_negatives_in_its_first_epoch(build, make_batch):
    method, batch = build("vsepp"), make_batch(range(5))
    images, texts = encode(method, batch)
    scores = method.score(images, texts)
    for epoch, mining in ((0, "all"), (1, "hardest"), (2, "hardest")):
        method.start_epoch(epoch)
        expected = triplet(scores, batch.owner, 0.2, mining)
        torch.testing.assert_close(method.loss(images, texts, batch)["triplet"], expected)


def test_vsepp_can_take_info_nce(build, make_batch):
    method, batch = (
        build("vsepp", {"objective": "info_nce", "temperature": 0.1}),
        make_batch([0, 1]),
    )
    images, texts = encode(method, batch)
    expected = info_nce(method.score(images, texts), batch.owner, 0.1)
    torch.testing.assert_close(method.loss(images, texts, batch), {"info_nce": expected})


def test_cora_names_its_entities(build, make_batch):
    texts = build("cora").encode_texts(make_batch([0, 1]))
    dog, cat, red, big = (name_id(word) for word in ("dog", "cat", "red", "big"))
    assert texts.entity_owner.tolist() == [0, 0, 1, 2, 2, 3, 4]
    assert texts.entity_names.tolist()[:3] == [dog, cat, dog]
    assert texts.entity_attributes.tolist()[:3] == [[red, 0, 0, 0], [big, red, 0, 0], [0] * 4]


def naive_cora(method, images, texts, owner):
    """The three losses with loops over captions and entities, unweighted."""
    v, t, e = images.vectors[:, 0], texts.vectors[:, 0], texts.entities
    caption = texts.entity_owner.tolist()
    names = texts.entity_names.tolist()
    held = [{a for a in row if a} for row in texts.entity_attributes.tolist()]
    image = [int(owner[c]) for c in caption]
    s, z = v @ t.T, v @ torch.cat([t, e]).T
    true = torch.zeros(z.shape, dtype=torch.bool)
    for j, i in enumerate(owner):
        true[i, j] = True
    for k in range(len(e)):
        for other in range(len(e)):
            if names[k] == names[other] and held[k] <= held[other]:
                true[image[other], len(t) + k] = True

    def anchored(logits, positive):
        rows = []
        for row, own in zip(logits, positive, strict=True):
            negatives = row[~own].exp().sum()
            rows.append((-(row[own].exp() / (row[own].exp() + negatives)).log()).mean())
        return torch.stack(rows).mean()

    specific = [(0.4 + v[i] @ e[k] - v[i] @ t[caption[k]]).relu() for k, i in enumerate(image)]
    return {
        "hardest": triplet(s, owner, 0.4),
        "contrastive": anchored(z / 0.5, true) + anchored(z.T / 0.5, true.T),
        "specificity": torch.stack(specific).mean(),
    }


def test_cora_weighs_its_three_losses(build, make_batch):
    method, batch = build("cora", {"temperature": 0.5}), make_batch(range(5))
    images, texts = encode(method, batch)
    expected = naive_cora(method, images, texts, batch.owner)
    weights = {"hardest": 1.0, "contrastive": 0.25, "specificity": 3.0}
    for epochs, warm_up in ((0.0, 0.0), (0.5, 0.5), (1.0, 1.0), (7.0, 1.0)):
        method.start_step(epochs)
        found = method.loss(images, texts, batch)
        assert set(found) == set(weights)
        for name, weight in weights.items():
            torch.testing.assert_close(found[name], warm_up * weight * expected[name])


def test_cora_can_add_info_nce_over_captions(build, make_batch):
    batch = make_batch([0, 1, 2])
    plain, added = build("cora"), build("cora", {"caption_weight": 0.5})
    images, texts = encode(plain.eval(), batch)
    terms = added.loss(images, texts, batch)
    expected = 0.5 * info_nce(plain.score(images, texts), batch.owner, 0.01)
    torch.testing.assert_close(terms.pop("captions"), expected)
    torch.testing.assert_close(terms, plain.loss(images, texts, batch))


def test_cora_without_the_last_activation_uses_all_directions(build, make_batch):
    batch = make_batch([0, 1, 2])
    objects = {
        kept: build("cora", {"last_activation": kept}).eval().graph(batch.graphs).objects
        for kept in (True, False)
    }
    assert objects[True].min() == 0 and objects[False].min() < 0
    torch.testing.assert_close(objects[False].relu(), objects[True])


def test_the_loss_needs_only_embeddings_and_owners(build, make_batch):
    """What several processes gather is enough: two halves put together are the whole."""
    method, whole = build("cora", {"region_attention": False}), make_batch(range(6))
    method.eval()
    halves = [make_batch(range(3)), make_batch(range(3, 6))]
    parts = [encode(method, half) for half in halves]
    images = Embeddings(torch.cat([image.vectors for image, _ in parts]))
    n_captions = len(parts[0][1])
    texts = Embeddings(
        **{
            field: torch.cat([first, second + n_captions * (field == "entity_owner")])
            for (field, first), second in zip(
                parts[0][1].parts().items(), parts[1][1].parts().values(), strict=True
            )
        }
    )
    gathered = replace(halves[0], owner=torch.cat([halves[0].owner, halves[1].owner + 3]))
    expected = method.loss(*encode(method, whole), whole)
    torch.testing.assert_close(method.loss(images, texts, gathered), expected)


def test_cora_without_graphs_says_so(build, make_batch):
    with pytest.raises(DataError, match="scene graphs"):
        build("cora").encode_texts(replace(make_batch([0]), graphs=None))


def test_an_unknown_method_is_refused_with_the_nearest(vocabulary):
    with pytest.raises(ConfigError, match="'vsep' does not exist; did you mean 'vsepp'"):
        build_method("vsep", {}, vocabulary=vocabulary, feature_width=WIDTH)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("vsepp", {"margn": 0.1}, "method 'vsepp': unknown key 'margn'; did you mean 'margin'"),
        ("cora", {"head": 4}, "method 'cora': unknown key 'head'; did you mean 'heads'"),
        ("vsepp", {"margin": -1}, "margin"),
        ("cora", {"size": 20, "heads": 16}, "size 20 is not a multiple of 16 heads"),
    ],
)
def test_a_wrong_setting_is_one_line(vocabulary, name, settings, message):
    with pytest.raises(ConfigError, match=message) as caught:
        build_method(name, settings, vocabulary=vocabulary, feature_width=WIDTH)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", METHODS)
def test_every_name_leads_to_a_method_with_settings(name):
    kind = method_class(name)
    assert kind.Settings.model_config["extra"] == "forbid"
    assert kind.__module__ == f"manymatch.methods.{name}"
