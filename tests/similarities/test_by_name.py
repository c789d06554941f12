"""Similarities as presets name them."""

from functools import partial

import pytest
import torch
from torch.nn.functional import normalize

from manymatch.config.strict import validate
from manymatch.similarities import (
    chamfer,
    cosine,
    match_probability,
    max_match,
    mil,
    smooth_chamfer,
    top_match,
)
from manymatch.similarities.set_similarity import SetSimilarity, SimilaritySettings
from manymatch.util.errors import ConfigError

GENERATOR = torch.Generator().manual_seed(0)
IMAGES = normalize(torch.randn(3, 4, 8, generator=GENERATOR), dim=-1)
TEXTS = normalize(torch.randn(5, 4, 8, generator=GENERATOR), dim=-1)


def similarity(name, **settings):
    return SetSimilarity(SimilaritySettings(name=name, **settings))


soft = partial(smooth_chamfer, alpha=4.0)
best = partial(top_match, k=1)
probability = partial(match_probability, scale=1.0, shift=0.0)


@pytest.mark.parametrize(
    ("name", "inference", "training", "retrieval"),
    [
        ("cosine", None, cosine, cosine),
        ("mil", None, mil, mil),
        ("mp", None, probability, probability),
        ("chamfer", None, chamfer, chamfer),
        ("smooth_chamfer", None, soft, soft),
        ("max_match", None, max_match, top_match),
        ("max_match", "matching", max_match, max_match),
        ("max_match", "topk", max_match, top_match),
        ("max_match", "max", max_match, best),
        ("max_match", "smooth_chamfer", max_match, soft),
    ],
)
def test_both_modes(name, inference, training, retrieval):
    module = similarity(name, inference=inference, alpha=4.0)
    for function in (training, retrieval):
        for learning in (True, False):
            with torch.set_grad_enabled(learning):
                scores = module(IMAGES.clone().requires_grad_(learning), TEXTS)
            torch.testing.assert_close(scores.detach(), function(IMAGES, TEXTS))
        module.eval()


EVERY = [(name, None) for name in ("cosine", "mil", "mp", "chamfer", "smooth_chamfer")]
EVERY += [("max_match", rule) for rule in ("matching", "topk", "max", "smooth_chamfer")]
IMAGE_MASK = torch.tensor([[1, 0, 1, 1], [0, 1, 0, 0], [1, 1, 1, 1]]).bool()
TEXT_MASK = torch.tensor([[1, 0, 0, 0]] * 2 + [[0, 1, 1, 0]] * 3).bool()
MASKS = {"images": (IMAGE_MASK, None), "both": (IMAGE_MASK, TEXT_MASK)}


def only_real(sets, mask):
    return [row if mask is None else row[mask[i]] for i, row in enumerate(sets)]


@pytest.mark.parametrize(("name", "inference"), EVERY)
@pytest.mark.parametrize("training", [True, False])
def test_what_a_mask_leaves_out_does_not_count(name, inference, training):
    module = similarity(name, inference=inference).train(training)
    for kind, masks in MASKS.items():
        real = [only_real(sets, mask) for sets, mask in zip((IMAGES, TEXTS), masks, strict=True)]
        rows = [torch.cat([module(x[None], y[None]) for y in real[1]], 1) for x in real[0]]
        for garbage in (torch.nan,):
            images, texts = IMAGES.clone(), TEXTS.clone()
            for sets, mask in zip((images, texts), masks, strict=True):
                if mask is not None:
                    sets[~mask] = garbage
                sets.requires_grad_(training)
            scores = module(images, texts, *masks)
            torch.testing.assert_close(scores, torch.cat(rows), msg=lambda m, k=kind: f"{k}: {m}")
            if not training:
                continue
            scores.sum().backward()
            for sets, mask in zip((images, texts), masks, strict=True):
                assert sets.grad.isfinite().all(), kind
                assert mask is None or (sets.grad[~mask] == 0).all(), kind


def test_a_set_of_nothing_is_refused():
    module = similarity("mil")
    mask = torch.ones(5, 4, dtype=torch.bool)
    mask[2] = False
    with pytest.raises(ValueError, match="a set has no real element"):
        module(IMAGES, TEXTS, None, mask)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"name": "mil", "inference": "topk"}, "'topk' is a rule of max_match, not of mil"),
        ({"name": "max_match", "inference": "best"}, "inference"),
        ({"name": "smooth_chamfer", "alpha": 0.0}, "alpha"),
        ({"name": "euclid"}, "name"),
        ({"name": "mil", "alhpa": 3.0}, "did you mean 'alpha'"),
    ],
)
def test_faults_are_one_line(value, message):
    with pytest.raises(ConfigError, match=message) as fault:
        validate(SimilaritySettings, value, "model.similarity")
    assert "\n" not in str(fault.value)
