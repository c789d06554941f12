"""The terms of DivE, MaxMatch and PVSE, their weights and what their settings mean."""

from dataclasses import replace

import pytest
import torch
from small_methods import encode

from manymatch.losses import (
    global_discriminative,
    gram_diversity,
    info_nce,
    intra_set_divergence,
    mmd,
    slot_diversity,
    triplet,
)
from manymatch.methods import check_model
from manymatch.similarities import max_match, mil, smooth_chamfer
from manymatch.util.errors import ConfigError

SET_METHODS = ["dive", "maxmatch", "pvse"]
set_methods = pytest.mark.parametrize("name", SET_METHODS)


CHANGED = {
    "margin": 0.5,
    "triplet_weight": 2.0,
    "contrastive_weight": 3.0,
    "temperature": 0.2,
    "mmd_weight": 4.0,
    "squared_mmd": True,
    "diversity_weight": 0.0,
}
SIMILARITIES = {"dive": smooth_chamfer, "pvse": mil, "maxmatch": max_match}


@set_methods
@pytest.mark.parametrize("changed", [{}, CHANGED], ids=["default", "changed"])
def test_each_method_weighs_its_losses_as_its_settings_say(build, make_batch, name, changed):
    method, batch = build(name, changed), make_batch(range(5))
    images, texts = encode(method, batch)
    scores = method.score(images, texts)
    torch.testing.assert_close(scores, SIMILARITIES[name](images.vectors, texts.vectors))
    own, index = method.settings, batch.image_index
    diversity = gram_diversity if name == "pvse" else slot_diversity
    terms = {
        "triplet": (own.triplet_weight, triplet(scores, index, own.margin)),
        "mmd": (own.mmd_weight, mmd(images.vectors, texts.vectors, squared=own.squared_mmd)),
        "contrastive": (own.contrastive_weight, info_nce(scores, index, own.temperature)),
        "diversity": (own.diversity_weight, diversity(images.slots) + diversity(texts.slots)),
    }
    if name == "maxmatch":
        sides = ((side.vectors, side.globals) for side in (images, texts))
        towards = global_discriminative(*sides, margin=0.6, scale=0.5)
        apart = intra_set_divergence(images.vectors, texts.vectors, margin=0.6, scale=0.5)
        terms |= {"global_discriminative": (0.1, towards / 2), "intra_set_divergence": (0.1, apart)}
    expected = {key: weight * term for key, (weight, term) in terms.items() if weight}
    torch.testing.assert_close(method.loss(images, texts, batch), expected)


def test_l_gd_is_the_mean_of_the_modalities_and_l_isd_their_sum(build, make_batch):
    """Loops over eq. 7 (1/2N) and eq. 8 (2/(M (M - 1)), image and text added)."""
    method, batch = build("maxmatch"), make_batch(range(4))
    images, texts = encode(method, batch)
    towards, apart = [], []
    for side in (images, texts):
        from_global, from_others = [], []
        for elements, whole in zip(side.vectors, side.globals, strict=True):
            cosines = [torch.cosine_similarity(x, whole, dim=0) for x in elements]
            from_global += [torch.exp(0.5 * (cosine - 0.6)) for cosine in cosines]
            from_others += [
                torch.exp(0.5 * (torch.cosine_similarity(x, y, dim=0) - 0.6))
                for position, x in enumerate(elements)
                for y in elements[:position]
            ]
        towards.append(sum(from_global) / len(from_global))
        apart.append(sum(from_others) / len(from_others))
    result = method.loss(images, texts, batch)
    torch.testing.assert_close(result["global_discriminative"], 0.1 * sum(towards) / 2)
    torch.testing.assert_close(result["intra_set_divergence"], 0.1 * sum(apart))


@set_methods
def test_what_a_group_does_not_say_stays_the_methods_own(name):
    own = check_model(name, {})
    changed = check_model(
        name, {"sets": {"size": 3}, "image": {"dropout": 0.5}, "similarity": {}, "text": {}}
    )
    assert changed.sets == own.sets.model_copy(update={"size": 3})
    assert changed.image == own.image.model_copy(update={"dropout": 0.5})
    assert (changed.similarity, changed.text) == (own.similarity, own.text)


def test_boxes_tell_the_place_of_an_image_s_features(build, make_batch):
    """The set follows the boxes, where the places are coded; a CNN's map has places of its own."""
    batch = make_batch(range(3))
    moved = replace(batch, boxes=batch.boxes.flip(1))
    for coded in (False, True):
        method = build("dive", {"sets": {"position_code": coded}}).eval()
        same = torch.equal(method.encode_images(batch).vectors, method.encode_images(moved).vectors)
        passes = torch.equal(method.image_passes(batch), method.image_passes(moved))
        assert same == passes == (not coded)
    assert build("pvse").image_passes(batch) is None  # one look, no passes


def test_places_that_nothing_tells_are_refused(build, make_batch):
    method = build("dive", {"sets": {"position_code": True}})
    batch = replace(make_batch(range(3)), boxes=None)
    with pytest.raises(ConfigError, match="different numbers of features without boxes"):
        method.encode_images(batch)


@set_methods
def test_padding_of_sets_is_not_scored_and_not_trained_on(build, make_batch, name):
    method, batch = build(name).eval(), make_batch(range(3))
    images, texts = encode(method, batch)
    mask = torch.ones(images.vectors.shape[:2], dtype=torch.bool)
    whole = replace(images, mask=mask)
    torch.testing.assert_close(method.score(whole, texts), method.score(images, texts))
    torch.testing.assert_close(method.loss(whole, texts, batch), method.loss(images, texts, batch))
    mask = mask.clone()
    mask[1, 0] = False
    padded, cut = replace(images, mask=mask), replace(images, vectors=images.vectors[:, 1:])
    scores = method.score(padded, texts)
    torch.testing.assert_close(scores[[0, 2]], method.score(images, texts)[[0, 2]])
    torch.testing.assert_close(scores[1], method.score(cut, texts)[1])
    none = torch.zeros(texts.vectors.shape[:2], dtype=torch.bool)
    for sides in ((padded, texts), (images, replace(texts, mask=none))):
        with pytest.raises(ValueError, match="sets of one size"):
            method.loss(*sides, batch)
