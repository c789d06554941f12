"""The losses on scores equal naive loops over their equations, values and gradients."""

import math

import pytest
import torch
from same_gradients import assert_same, image_indices, left_out, normal

from manymatch import losses
from manymatch.losses.contrastive import (
    entity_contrastive,
    entity_positives,
    info_nce,
    positive_pairs,
    sigmoid_pairs,
)
from manymatch.losses.triplets import specificity, triplet
from manymatch.util.errors import DataError

NONE = torch.zeros(0, dtype=torch.int64)


def hinge(value):
    return value if value > 0 else value * 0


def naive_triplet(s, image_index, margin, mining, out):
    reduce = {"hardest": max, "all": sum, "mean": lambda hinges: sum(hinges) / len(hinges)}[mining]
    total = s.sum() * 0
    for j, i in enumerate(image_index):
        texts = [
            hinge(margin + s[i, k] - s[i, j])
            for k in range(len(image_index))
            if image_index[k] != i and not out[i, k]
        ]
        others = [k for k in range(len(s)) if k != i and not out[k, j]]
        images = [hinge(margin + s[k, j] - s[i, j]) for k in others]
        total = total + (reduce(texts) if texts else 0) + (reduce(images) if images else 0)
    return total / len(image_index)


def naive_info_nce(s, image_index, temperature, out):
    z = torch.exp(s / temperature) * ~out
    total = s.sum() * 0
    for j, i in enumerate(image_index):
        texts = sum(z[i, k] for k in range(len(image_index)) if image_index[k] != i)
        images = sum(z[k, j] for k in range(len(s)) if k != i)
        total = total - torch.log(z[i, j] / (z[i, j] + texts))
        total = total - torch.log(z[i, j] / (z[i, j] + images))
    return total / len(image_index)


def naive_sigmoid(z, image_index, out):
    total = z.sum() * 0
    for j, i in enumerate(image_index):
        for k in (k for k in range(len(z)) if not out[k, j]):
            sign = 1 if k == i else -1
            total = total - torch.log(1 / (1 + torch.exp(-sign * z[k, j])))
    return total / len(image_index)


def naive_anchored(s, positive, temperature, out):
    total = s.sum() * 0
    for row, true in zip(torch.exp(s / temperature) * ~out, positive, strict=True):
        negatives = sum((z for z, p in zip(row, true, strict=True) if not p), row.sum() * 0)
        terms = [-torch.log(z / (z + negatives)) for z, p in zip(row, true, strict=True) if p]
        total = total + sum(terms) / len(terms)
    return total / len(s)


def scores_of(image_index):
    return normal(max(image_index) + 1, len(image_index)).detach().tanh().requires_grad_()


@pytest.mark.parametrize(("share", "margin"), [(0.0, 0.2), (0.5, 3.0), (1.0, 0.2)])
@pytest.mark.parametrize("image_index", image_indices(), ids=str)
def test_losses_of_all_pairs(image_index, margin, share):
    """Some pairs of other images, or all, are left out of the negatives."""
    scores, index = scores_of(image_index), torch.tensor(image_index)
    out = left_out(positive_pairs(scores, index), share)
    passed = out if share else None
    for mining in ("hardest", "all", "mean"):
        expected = naive_triplet(scores, image_index, margin, mining, out)
        assert_same(triplet(scores, index, margin, mining, passed), expected, [scores])
    temperature = margin / 3
    expected = naive_info_nce(scores, image_index, temperature, out)
    assert_same(info_nce(scores, index, temperature, passed), expected, [scores])
    expected = naive_sigmoid(scores / temperature - margin, image_index, out)
    result = sigmoid_pairs(scores / temperature - margin, index, passed)
    assert_same(result, expected, [scores])
    assert triplet(scores, index, margin) == triplet(scores, index, margin, "hardest")


def test_an_unknown_mining_is_refused_with_the_known_ones():
    with pytest.raises((ValueError, DataError), match=r"'foo'.*'hardest', 'all' or 'mean'"):
        triplet(scores_of([0, 1]), torch.tensor([0, 1]), 0.2, "foo")


def test_info_nce_stays_finite_at_a_sharp_temperature_in_single_precision():
    scores = torch.tensor([[-1.0, 1.0], [1.0, -1.0]], requires_grad=True)
    value = info_nce(scores, torch.tensor([0, 1]), 0.01)
    value.backward()
    torch.testing.assert_close(value, torch.tensor(400.0))
    assert scores.grad.isfinite().all()


def drawn_positives():
    positive = torch.rand(4, 9, generator=torch.Generator().manual_seed(1)) > 0.5
    positive[torch.arange(9) % 4, torch.arange(9)] = True
    return positive


NO_NEGATIVES = torch.tensor([[True, True, True], [False, True, False]])


@pytest.mark.parametrize(("share", "temperature"), [(0.0, 0.05), (0.5, 1.0)])
@pytest.mark.parametrize("positive", [drawn_positives(), NO_NEGATIVES], ids=["drawn", "anchors"])
def test_entity_contrastive(positive, temperature, share):
    scores = normal(*positive.shape).detach().tanh().requires_grad_()
    out = left_out(positive, share)
    expected = naive_anchored(scores, positive, temperature, out)
    expected = expected + naive_anchored(scores.T, positive.T, temperature, out.T)
    passed = out if share else None
    assert_same(entity_contrastive(scores, positive, temperature, passed), expected, [scores])


def test_an_anchor_without_positives_counts_as_zero():
    """One pair of two images and two concepts is true: log 2 over two anchors, each way."""
    positive = torch.tensor([[True, False], [False, False]])
    result = entity_contrastive(torch.zeros(2, 2), positive, 0.5)
    assert result.item() == pytest.approx(math.log(2))


def test_specificity():
    captions, entities = normal(4), normal(7, seed=1)
    caption = [0, 0, 1, 2, 2, 2, 3]
    result = specificity(captions, entities, torch.tensor(caption), 0.4)
    terms = [hinge(0.4 + entities[k] - captions[t]) for k, t in enumerate(caption)]
    assert_same(result, sum(terms) / len(terms), [captions, entities])


def naive_positives(image, names, attributes, n_images):
    """For each image and entity: does the image have such an entity with those attributes?"""

    def true(i, entity):
        return any(
            image[other] == i
            and names[other] == names[entity]
            and set(attributes[entity]) <= set(attributes[other])
            for other in range(len(names))
        )

    return [[true(i, entity) for entity in range(len(names))] for i in range(n_images)]


def test_entity_positives_equal_the_naive_loop():
    generator = torch.Generator().manual_seed(0)
    image = torch.randint(0, 5, (60,), generator=generator)
    names = torch.randint(1, 4, (60,), generator=generator)
    attributes = torch.randint(0, 3, (60, 4), generator=generator)
    sets = [[int(a) for a in row if a] for row in attributes]
    expected = naive_positives(image.tolist(), names.tolist(), sets, 5)
    assert entity_positives(image, names, attributes, 5).tolist() == expected
    asked = [2, 7, 40]  # entities of captions after drops, of images that have more
    fewer = attributes[asked].index_fill(1, torch.tensor([1]), 0)
    held = [*sets, *[[int(a) for a in row if a] for row in fewer]]
    among = naive_positives(image.tolist() + [-1] * 3, [*names.tolist(), *names[asked]], held, 5)
    result = entity_positives(image, names, attributes, 5, (names[asked], fewer))
    assert result.tolist() == [row[-3:] for row in among]


def pairs(x):
    return torch.zeros(x.shape[:2], dtype=torch.bool)


SET = (0, 4, 6)
EMPTY = {
    "triplet": [
        (lambda x, mining=mining: triplet(x, NONE, 0.2, mining), shape)
        for mining in ("hardest", "all", "mean")
        for shape in [(0, 0), (3, 0)]
    ],
    "info_nce": [(lambda x: info_nce(x, NONE, 0.05), shape) for shape in [(0, 0), (3, 0)]],
    "sigmoid_pairs": [(lambda x: sigmoid_pairs(x, NONE), shape) for shape in [(0, 0), (3, 0)]],
    "entity_contrastive": [
        (lambda x: entity_contrastive(x, pairs(x), 0.01), shape)
        for shape in [(0, 0), (3, 0), (0, 3), (3, 4)]
    ],
    "soft_match": [
        (lambda x: losses.soft_match(x, pairs(x)), shape) for shape in [(0, 0), (3, 0), (0, 3)]
    ],
    "soft_contrastive": [
        (lambda x: losses.soft_contrastive(x, pairs(x)), shape) for shape in [(0, 0, 4), (3, 0, 4)]
    ],
    "specificity": [(lambda x: specificity(torch.ones(3), x, NONE, 0.4), (0,))],
    "swapped_assignment": [(lambda x: losses.swapped_assignment(x, x), (0, 5))],
    "mmd": [
        (lambda x: losses.mmd(x, torch.ones(3, 2, 6)), SET),
        (lambda x: losses.mmd(torch.ones(3, 2, 6), x), SET),
        (lambda x: losses.mmd(x, x), SET),
        (lambda x: losses.mmd(x, torch.zeros(0, 2, 6)), (3, 4, 6)),
    ],
    "uniformity": [(losses.uniformity, shape) for shape in [(0, 6), (1, 6)]],
    "slot_diversity": [(losses.slot_diversity, SET)],
    "gram_diversity": [(losses.gram_diversity, SET)],
    "intra_set_divergence": [
        (lambda x: losses.intra_set_divergence(x, margin=0.6, scale=0.5), SET)
    ],
    "global_discriminative": [
        (lambda x: losses.global_discriminative((x, x.sum(1)), margin=0.6, scale=0.5), SET)
    ],
}


@pytest.mark.parametrize("name", sorted(set(losses.__all__) - {"sinkhorn"}))
def test_nothing_costs_nothing(name):
    for loss, shape in EMPTY[name]:
        empty = torch.zeros(*shape, requires_grad=True)
        value = loss(empty)
        (gradient,) = torch.autograd.grad(value, empty)
        assert value.shape == () and value == 0, shape
        assert (gradient == 0).all(), shape
