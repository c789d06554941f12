"""Every loss equals a naive loop over its equation, values and gradients."""

from __future__ import annotations

import pytest
import torch
from same_gradients import assert_same

from manymatch.losses.contrastive import entity_contrastive, entity_positives, info_nce
from manymatch.losses.triplets import specificity, triplet

IMAGE_INDEX = {
    "one caption each": [0, 1, 2, 3],
    "several captions": [0, 0, 1, 1, 1, 2, 3, 3],
    "one image": [0, 0, 0],
    "unordered": [2, 0, 1, 2, 0],
}
image_indices = pytest.mark.parametrize("image_index", IMAGE_INDEX.values(), ids=IMAGE_INDEX)


def hinge(value):
    return value if value > 0 else value * 0


def naive_triplet(s, image_index, margin, mining):
    reduce = {"hardest": max, "all": sum, "mean": lambda hinges: sum(hinges) / len(hinges)}[mining]
    total = s.sum() * 0
    for j, i in enumerate(image_index):
        texts = [
            hinge(margin + s[i, k] - s[i, j])
            for k in range(len(image_index))
            if image_index[k] != i
        ]
        images = [hinge(margin + s[k, j] - s[i, j]) for k in range(len(s)) if k != i]
        total = total + (reduce(texts) if texts else 0) + (reduce(images) if images else 0)
    return total / len(image_index)


def naive_info_nce(s, image_index, temperature):
    z = torch.exp(s / temperature)
    total = s.sum() * 0
    for j, i in enumerate(image_index):
        texts = sum(z[i, k] for k in range(len(image_index)) if image_index[k] != i)
        images = sum(z[k, j] for k in range(len(s)) if k != i)
        total = total - torch.log(z[i, j] / (z[i, j] + texts))
        total = total - torch.log(z[i, j] / (z[i, j] + images))
    return total / len(image_index)


def naive_anchored(s, positive, temperature):
    total = s.sum() * 0
    for row, true in zip(torch.exp(s / temperature), positive, strict=True):
        negatives = sum((z for z, p in zip(row, true, strict=True) if not p), row.sum() * 0)
        terms = [-torch.log(z / (z + negatives)) for z, p in zip(row, true, strict=True) if p]
        total = total + sum(terms) / len(terms)
    return total / len(s)


def naive_entity_contrastive(s, positive, temperature):
    forth = naive_anchored(s, positive, temperature)
    return forth + naive_anchored(s.T, positive.T, temperature)


def random_scores(n, m, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, m, generator=generator, dtype=torch.float64).tanh().requires_grad_()


@image_indices
@pytest.mark.parametrize("mining", ["hardest", "all", "mean"])
@pytest.mark.parametrize("margin", [0.2, 3.0])
def test_triplet(image_index, mining, margin):
    scores = random_scores(max(image_index) + 1, len(image_index))
    result = triplet(scores, torch.tensor(image_index), margin, mining)
    assert_same(result, naive_triplet(scores, image_index, margin, mining), [scores])


@image_indices
@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_info_nce(image_index, temperature):
    scores = random_scores(max(image_index) + 1, len(image_index))
    result = info_nce(scores, torch.tensor(image_index), temperature)
    assert_same(result, naive_info_nce(scores, image_index, temperature), [scores])


def test_captions_of_the_same_image_do_not_compete():
    """Raising one caption's score leaves its sister's terms alone."""
    scores = torch.tensor([[0.9, 0.1], [-1.0, -1.0]], dtype=torch.float64)
    image_index = torch.tensor([0, 0])
    raised = scores.clone()
    raised[0, 0] += 1.0
    assert triplet(raised, image_index, 0.2) == triplet(scores, image_index, 0.2)
    alone = info_nce(scores[:, 1:], image_index[1:], 0.1)
    both = info_nce(torch.cat([scores[:, :1] + 1e3, scores[:, 1:]], 1), image_index, 0.1)
    torch.testing.assert_close(both, alone / 2)


def test_an_unknown_mining_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"mining is 'foo': expected 'hardest', 'all' or 'mean'$"):
        triplet(random_scores(2, 2), torch.tensor([0, 1]), 0.2, "foo")


def test_info_nce_stays_finite_at_a_sharp_temperature_in_single_precision():
    scores = torch.tensor([[-1.0, 1.0], [1.0, -1.0]], requires_grad=True)
    value = info_nce(scores, torch.tensor([0, 1]), 0.01)
    value.backward()
    torch.testing.assert_close(value, torch.tensor(400.0))
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_entity_contrastive(temperature):
    scores = random_scores(4, 9)
    positive = torch.rand(4, 9, generator=torch.Generator().manual_seed(1)) > 0.5
    positive[torch.arange(9) % 4, torch.arange(9)] = True
    result = entity_contrastive(scores, positive, temperature)
    assert_same(result, naive_entity_contrastive(scores, positive, temperature), [scores])


def test_entity_contrastive_of_captions_alone_is_info_nce():
    scores, image_index = random_scores(3, 6), torch.tensor([0, 0, 1, 1, 2, 2])
    own = torch.arange(3)[:, None] == image_index
    torch.testing.assert_close(
        entity_contrastive(scores, own, 0.05), info_nce(scores, image_index, 0.05)
    )


def test_entity_contrastive_survives_an_anchor_without_negatives():
    scores = random_scores(2, 3)
    positive = torch.tensor([[True, True, True], [False, True, False]])
    result = entity_contrastive(scores, positive, 0.01)
    assert_same(result, naive_entity_contrastive(scores, positive, 0.01), [scores])


def test_specificity():
    captions, entities = random_scores(1, 4), random_scores(1, 7, seed=1)
    caption = [0, 0, 1, 2, 2, 2, 3]
    result = specificity(captions[0], entities[0], torch.tensor(caption), 0.4)
    terms = [hinge(0.4 + entities[0, k] - captions[0, t]) for k, t in enumerate(caption)]
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


def test_a_dog_is_true_of_the_big_black_dog_but_not_the_other_way_round():
    dog, big, black = 7, 1, 2
    positive = entity_positives(
        torch.tensor([0, 1]), torch.tensor([dog, dog]), torch.tensor([[0, 0], [black, big]]), 2
    )
    assert positive.tolist() == [[True, False], [True, True]]
