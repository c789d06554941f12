"""What every registered method keeps: contract, learning, seeds, settings."""

from dataclasses import replace

import pytest
import torch
from small_methods import NAMES, SMALL, UNTRAINED, VARIANTS, WIDTH, encode, losses, settled, train

from manymatch.config.names import method_names
from manymatch.methods import build_method
from manymatch.util.errors import ConfigError

MATCHING = ("hardest_weight", "contrastive_weight", "caption_weight")
variants = pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=str)


@variants
def test_embeddings_keep_the_contract_alone_and_in_a_batch(build, make_batch, name, settings):
    method, batch = build(name, settings), make_batch(range(4))
    encode(method, batch)  # batch statistics that are not the initial ones
    method.eval()
    with torch.no_grad():
        images, texts = encode(method, batch)
        assert (len(images), len(texts)) == (4, len(batch.caption_ids))
        for vectors in (images.vectors, texts.vectors):
            torch.testing.assert_close(vectors.norm(dim=2), torch.ones(vectors.shape[:2]))
        scores = method.score(images, texts)
        assert scores.shape == (len(images), len(texts))
        block = method.score(images.rows(slice(1, 2)), texts.rows(slice(2, 5)))
        torch.testing.assert_close(block, scores[1:2, 2:5])
        for i in (0, 3):
            image, own = encode(method, make_batch([i]))
            torch.testing.assert_close(image.vectors[0], images.vectors[i], atol=1e-5, rtol=1e-4)
            same = texts.vectors[batch.image_index == i]
            torch.testing.assert_close(own.vectors, same, atol=1e-5, rtol=1e-4)


@variants
def test_double_precision_is_kept_from_the_features_to_the_gradients(
    build, make_batch, name, settings
):
    method, batch = build(name, settings).double(), make_batch(range(4))
    batch = replace(batch, features=batch.features.double())
    images, texts = encode(method, batch)
    terms = method.loss(images, texts, batch)
    torch.stack(list(terms.values())).sum().backward()
    values = [*images.parts().values(), *texts.parts().values(), *terms.values()]
    values.append(method.score(images, texts))
    assert {value.dtype for value in values if value.is_floating_point()} == {torch.float64}
    for side in (images, texts):
        lengths = side.vectors.norm(dim=2)
        torch.testing.assert_close(lengths, torch.ones_like(lengths), atol=1e-12, rtol=0)
    gradients = {n: p.grad for n, p in method.named_parameters() if p.requires_grad}
    assert [name for name, gradient in gradients.items() if gradient is None] == []
    assert all(gradient.isfinite().all() for gradient in gradients.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_falls_and_depends_on_the_seed_alone(build, make_batch, name):
    batch = make_batch(range(10))
    history = train(build(name), batch)
    assert history[-1] < 0.8 * history[0]
    assert train(build(name), batch, steps=2) == history[:2]
    assert train(build(name, seed=1), batch, steps=1) != history[:1]


@pytest.mark.parametrize("name", NAMES)
def test_pairs_that_are_left_out_are_no_negatives(build, make_batch, name):
    batch = make_batch(range(5))
    others = batch.image_index != torch.arange(5)[:, None]

    def terms(left_out):
        return losses(settled(build(name)), replace(batch, left_out=left_out))

    plain = terms(None)
    torch.testing.assert_close(terms(torch.zeros_like(others)), plain)
    without_negatives = terms(others)
    # A fresh PCME gives its negatives a probability of nearly 0.
    assert without_negatives != plain or name == "pcme"
    assert all(term.isfinite() for term in without_negatives.values())


def test_an_unknown_method_is_refused_with_the_nearest(vocabulary):
    with pytest.raises(ConfigError, match="'vsep' does not exist; did you mean 'vsepp'"):
        build_method("vsep", {}, vocabulary=vocabulary, feature_width=WIDTH)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("vsepp", {"margn": 0.1}, "method 'vsepp': unknown key 'margn'; did you mean 'margin'"),
        ("cora", {"head": 4}, "method 'cora': unknown key 'head'; did you mean 'heads'"),
        ("vsepp", {"margin": -1}, "margin"),
        ("cora", dict.fromkeys(MATCHING, 0.0), "all 0"),
        ("dive", {"triplet_weight": 0.0}, "all 0"),
        ("pvse", {"sets": {"sise": 3}}, "unknown key 'sets.sise'; did you mean 'size'"),
        ("maxmatch", {"sets": 4}, "sets"),
        ("dive", {"sets": {"module": "pie_net", "update": "gru"}}, "is an option of the module"),
        ("dive", {"image": {"encoder": "raw", "position_size": 8}}, "is an option of the encoder"),
        ("dive", {"margin": 0}, "margin"),
        ("dive", {"size": 15}, "size"),
        ("cora", {"size": 20, "heads": 16}, "size 20 is not a multiple of 16 heads"),
        (
            "cora",
            {"concept_size": 5, "concept_directions": "concatenate"},
            "concept_size 5 is odd: two directions cannot share it",
        ),
        ("pretrained", {"model": "x", "prompt": "a photo"}, "prompt: expected a text with one {}"),
        ("pretrained", {"model": "x"}, "pieces of its own tokeniser"),
        ("dive", {"text": {"encoder": "hf"}}, "the group 'hf' with a model"),
        ("cora", {"concept_encoder": "gru", "hf": {"model": "x"}}, "belong together"),
        ("dive", {"text": {"encoder": "hf", "hf": {"model": "x", "train": "last"}}}, "hf.train"),
    ],
)
def test_a_wrong_setting_is_one_line(vocabulary, name, settings, message):
    with pytest.raises(ConfigError, match=message) as caught:
        build_method(name, settings, vocabulary=vocabulary, feature_width=WIDTH)
    assert "\n" not in str(caught.value)


def test_every_method_is_tried():
    tried = {name for name, _ in VARIANTS}
    assert set(NAMES) == {*method_names()} - UNTRAINED == tried and tried <= set(SMALL)
