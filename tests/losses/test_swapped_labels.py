"""SwAMP's loss against a naive loop over its equations, and what its queues hold."""

import copy

import pytest
import torch
from same_gradients import assert_same
from torch.nn.functional import normalize

from manymatch.config.strict import validate
from manymatch.losses.optimal_transport import sinkhorn
from manymatch.losses.pseudo_labels import (
    LabelSettings,
    Queue,
    SwappedLabels,
    objective,
    swapped_assignment,
)
from manymatch.losses.triplets import triplet
from manymatch.util.errors import ConfigError

SIZE = 5
SMALL = {"n_classes": 4, "queue": 8, "tau": 0.3, "eta": 3.0}


def labels_of(**changed):
    torch.manual_seed(0)
    return SwappedLabels(LabelSettings(**(SMALL | changed)), SIZE).double()


def pairs(count, seed):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(2, count, SIZE, generator=generator, dtype=torch.float64)
    return [vectors.requires_grad_() for vectors in normalize(drawn, dim=2)]


def naive_cross_entropy(log_p, q):
    total = log_p.sum() * 0
    for i in range(len(log_p)):
        for y in range(log_p.shape[1]):
            total = total - q[i, y] * log_p[i, y]
    return total / len(log_p)


def naive_log_p(vectors, prototypes, tau):
    """log of exp(P_y . x / tau) / sum_z exp(P_z . x / tau), class by class."""
    rows = []
    for x in vectors:
        scores = [(p / p.norm()) @ x / tau for p in prototypes]
        total = sum(score.exp() for score in scores)
        rows.append(torch.stack([score - total.log() for score in scores]))
    return torch.stack(rows)


def naive_loss(module, seen):
    """The loss of the last pair of batches in `seen`; the earlier batches are in the queues."""
    queue = len(module.images.queue.rows)
    settings, log_p, q = module.settings, [], []
    solve = settings.eta, settings.rounds, settings.tolerance
    for modality in range(2):
        latest = [vectors[modality] for vectors in reversed(seen)]
        kept = torch.cat(latest)[: max(queue, len(latest[0]))]
        every = naive_log_p(kept, module.prototypes, module.settings.tau)
        log_p.append(every[: len(latest[0])])
        q.append(sinkhorn(every, *solve)[: len(latest[0])])
    if module.settings.assignment == "hard":
        q = [torch.eye(module.settings.n_classes, dtype=part.dtype)[part.argmax(1)] for part in q]
    return naive_cross_entropy(log_p[0], q[1]) + naive_cross_entropy(log_p[1], q[0])


@pytest.mark.parametrize("shape", [(5, 3), (1, 4), (3, 1)])
def test_swapped_assignment(shape):
    generator = torch.Generator().manual_seed(0)
    scores, q = torch.randn(2, *shape, generator=generator, dtype=torch.float64)
    log_p, q = scores.log_softmax(1).requires_grad_(), q.softmax(1)
    result, expected = swapped_assignment(log_p, q), naive_cross_entropy(log_p, q)
    assert_same(result, expected, [log_p])


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"queue": 0},
        {"queue": 2},
        {"n_classes": 1},
        {"assignment": "hard"},
        {"rounds": None, "tolerance": 1e-10},
        {"tau": 0.01, "eta": 20.0, "rounds": 1},
    ],
    ids=str,
)
def test_the_loss_equals_the_naive_loop(changed):
    """Over several batches, of unequal size, past the time when the queues are full."""
    module, seen = labels_of(**changed), []
    for seed, count in enumerate((3, 1, 4, 3, 2)):
        seen.append(pairs(count, seed))
        result, expected = module(*seen[-1]), naive_loss(module, seen)
        assert not module.images.queue.rows.requires_grad
        inputs = [*seen[-1], module.prototypes]
        assert_same(result, expected, inputs, 1e-6 if module.settings.tau < 0.1 else 1e-8)


def naive_objective(module, images, texts, margin):
    """Eq. 6: L_c of eq. 1 is a sum over the pairs, L_s of eq. 4 a mean over them."""
    total = module.settings.weight * naive_loss(module, [(images, texts)])
    for i, (image, text) in enumerate(zip(images, texts, strict=True)):
        others = [j for j in range(len(images)) if j != i]
        worst_text = max(image @ texts[j] for j in others)
        worst_image = max(images[j] @ text for j in others)
        total = total + (margin + worst_text - image @ text).relu()
        total = total + (margin + worst_image - image @ text).relu()
    return total


@pytest.mark.parametrize(("count", "weight"), [(2, 1.0), (7, 0.25)])
def test_the_contrastive_loss_is_a_sum_and_the_swapped_one_a_mean(count, weight):
    module, (images, texts) = labels_of(weight=weight), pairs(count, 0)
    means = {"triplet": triplet(images @ texts.T, torch.arange(count), 0.2)}
    terms = objective(means, module, images, texts)
    expected = naive_objective(module, images, texts, 0.2)
    inputs = [images, texts, module.prototypes]
    assert_same(sum(terms.values()), expected, inputs, atol=1e-8)
    assert objective(means, None, images, texts) == {"triplet": terms["triplet"]}


def test_a_loaded_module_goes_on_as_the_saved_one():
    """Queues, how full they are, and potentials are part of the state."""
    module = labels_of(rounds=None, tolerance=1e-6)
    module(*pairs(3, 0))
    other = labels_of(rounds=None, tolerance=1e-6)
    other.load_state_dict(copy.deepcopy(module.state_dict()))
    for seed in (1, 2, 3):
        assert module(*pairs(3, seed)) == other(*pairs(3, seed))
    torch.testing.assert_close(module.state_dict(), other.state_dict())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tolerance": 1e-4}, "either rounds or tolerance"),
        ({"rounds": None}, "either rounds or tolerance"),
        ({"n_clases": 3}, "did you mean 'n_classes'"),
        ({"queue": -1}, "queue"),
    ],
)
def test_a_wrong_setting_is_one_line(changed, message):
    with pytest.raises(ConfigError, match=message):
        validate(LabelSettings, changed, "labels")


def rows(first, count):
    return torch.arange(first, first + count, dtype=torch.float32)[:, None].expand(-1, 2)


def test_the_latest_rows_stay_and_the_oldest_go():
    queue = Queue(5, 2)
    assert queue.push(rows(0, 2)).tolist() == []
    assert queue.push(rows(2, 2))[:, 0].tolist() == [0, 1]
    assert queue.push(rows(4, 2))[:, 0].tolist() == [2, 3, 0]
    assert queue.push(rows(6, 1))[:, 0].tolist() == [4, 5, 2, 3]
