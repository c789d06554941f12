"""PCME++'s own terms: labels of mixed images, the loss and its gradients, scores, uncertainty."""

from dataclasses import replace

import pytest
import torch
from small_methods import encode, losses

from manymatch.batch.padding import padded_rows
from manymatch.losses.probabilistic import match_entropy
from manymatch.methods.pcmepp import mixed
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.networks.backbones import resnet


def distance(image, text):
    """Eq. 1 of one pair, dimension by dimension, of `(mean, log variance)`."""
    (mu, spread), (nu, other) = image, text
    squares = sum((a - b) ** 2 for a, b in zip(mu, nu, strict=True))
    return squares + sum(torch.exp(a) + torch.exp(b) for a, b in zip(spread, other, strict=True))


def entropy(logits, labels):
    total = 0.0
    for row, own in zip(logits, labels, strict=True):
        for z, y in zip(row, own, strict=True):
            p = 1 / (1 + torch.exp(-z))
            total = total - y * torch.log(p) - (1 - y) * torch.log(1 - p)
    return total / sum(map(len, logits))


def pseudo(logits, labels):
    """The labels of each row with pseudo-positives, the mean over the row's true candidates."""
    rows = []
    for row, own in zip(logits, labels, strict=True):
        true = [z for z, y in zip(row, own, strict=True) if y == max(own)]
        passed = [sum(z >= near for near in true) / len(true) for z in row]
        rows.append(
            [share * max(own) + (1 - share) * y for share, y in zip(passed, own, strict=True)]
        )
    return rows


def turned(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def naive(method, images, texts, labels):
    """The released total of the loss, one pair and one dimension at a time."""
    sides = [
        list(zip(side.vectors[:, 0], side.log_variance, strict=True)) for side in (images, texts)
    ]
    scale, shift = method.scale(), method.shift
    logits = [[shift - scale * distance(v, t) for t in sides[1]] for v in sides[0]]
    kl = 0.0
    for side in sides:
        terms = [
            (mu[d] ** 2 + torch.exp(spread[d]) - 1 - spread[d]) / 2
            for mu, spread in side
            for d in range(len(mu))
        ]
        kl = kl + sum(terms) / len(terms)
    of_images = entropy(logits, pseudo(logits, labels))
    of_texts = entropy(turned(logits), pseudo(turned(logits), turned(labels)))
    return {
        "match": 2 * entropy(logits, labels),
        "pseudo": 0.3 * (of_images + of_texts),
        "vib": 0.2 * kl,
    }


@pytest.mark.parametrize("mixing", [0.0, 0.7])
def test_the_loss_and_its_gradients_are_those_of_a_loop_over_pairs(build, make_batch, mixing):
    settings = {"mixing": mixing, "pseudo_weight": 0.3, "vib_weight": 0.2, "log_variance": -3.0}
    method = build("pcmepp", settings | {"label_smoothing": 0.01}).double()
    batch = make_batch([0, 1, 2, 3])
    batch = replace(batch, features=batch.features.double())
    torch.manual_seed(2)
    images, texts = encode(method, batch)
    n, index = len(images), batch.image_index.tolist()
    shares = images.own_share.tolist() if mixing else [1.0] * n
    assert not mixing or any(0 < share < 1 for share in shares)
    labels = [
        [shares[i] * (j == i) + (1 - shares[i]) * (j == n - 1 - i) for j in index] for i in range(n)
    ]
    labels = [[0.01 + 0.98 * y for y in row] for row in labels]
    terms, expected = method.loss(images, texts, batch), naive(method, images, texts, labels)
    assert terms.keys() == expected.keys()
    parameters = list(method.parameters())
    for name, term in terms.items():
        torch.testing.assert_close(term, expected[name], atol=1e-6, rtol=1e-6)
        gradients, wanted = (
            torch.autograd.grad(one, parameters, retain_graph=True, allow_unused=True)
            for one in (term, expected[name])
        )
        for gradient, other in zip(gradients, wanted, strict=True):
            assert (gradient is None) == (other is None)
            if gradient is not None:
                torch.testing.assert_close(gradient, other, atol=1e-6, rtol=1e-6)


def test_mixed_features_are_those_of_two_images_by_the_share():
    """Every row is the image's own, the partner's, or a mean of both by one weight."""
    torch.manual_seed(0)
    features = torch.rand(200, 5, 3)
    mask = torch.arange(5) < torch.randint(1, 6, (200, 1))
    features = features * mask[:, :, None]
    result, shares = mixed(features, mask, 0.5, 2.0)
    kinds = dict.fromkeys(("whole", "mean", "cut"), 0)
    for i, own in enumerate(mask.sum(1).tolist()):
        partner, both = features[199 - i], min(own, int(mask[199 - i].sum()))
        span = features[i] - partner
        moved = ((result[i] - partner)[:both] * span[:both]).sum(1)
        weights = (moved / span[:both].square().sum(1)).tolist()
        torch.testing.assert_close(result[i, both:], features[i, both:])
        assert float(shares[i]) == pytest.approx((sum(weights) + own - both) / own, abs=1e-4)
        for r, weight in enumerate(weights):
            torch.testing.assert_close(
                result[i, r], weight * features[i, r] + (1 - weight) * partner[r], atol=1e-4, rtol=0
            )
        if all(abs(weight - 1) < 1e-4 for weight in weights):
            kinds["whole"] += 1
        elif all(min(abs(weight), abs(weight - 1)) < 1e-4 for weight in weights):
            kinds["cut"] += 1
        else:
            assert max(weights) - min(weights) < 1e-3
            kinds["mean"] += 1
    assert 90 < kinds["whole"] < 150 and kinds["mean"] > 30 and kinds["cut"] > 15, kinds


def test_images_are_mixed_in_training_alone(build, make_batch):
    method, batch = build("pcmepp", {"mixing": 0.9}), make_batch(range(6))
    first, second = losses(method, batch), losses(method, batch)
    assert first["match"] != second["match"]
    method.eval()
    images = method.encode_images(batch)
    assert images.parts().keys() == {"vectors", "log_variance"}
    alone = method.encode_images(make_batch([1]))
    torch.testing.assert_close(images.vectors[1:2], alone.vectors)


def test_partners_are_right_after_parts_of_a_batch_are_joined(build, make_batch):
    """As `training.gather` joins the parts that processes or steps of one batch encode."""
    method, parts = build("pcmepp", {"mixing": 0.9}), [make_batch([0, 1]), make_batch([2, 3, 4])]
    encoded = [encode(method, part) for part in parts]
    images, texts = (Embeddings.join(sides) for sides in zip(*encoded, strict=True))
    index = torch.cat([parts[0].image_index, 2 + parts[1].image_index])
    method.settings = method.settings.model_copy(update={"pseudo_weight": 0.0, "vib_weight": 0.0})
    loss = method.loss(images, texts, replace(parts[0], image_index=index))["match"]
    partners, shares = [1, 0, 4, 3, 2], images.own_share.tolist()
    labels = [
        [shares[i] * (j == i) + (1 - shares[i]) * (j == partners[i]) for j in index.tolist()]
        for i in range(5)
    ]
    labels = 0.0001 + 0.9998 * torch.tensor(labels)
    logits = method.shift + method.scale() * method.score(images, texts)
    torch.testing.assert_close(loss, 2 * match_entropy(logits, labels))


def test_mixed_pixels_are_means_or_have_a_square_of_the_partner():
    torch.manual_seed(0)
    side, pixels = 6, torch.randint(0, 256, (200, 36, 3)).float()
    result, shares = mixed(pixels, torch.ones(200, 36, dtype=torch.bool), 0.8, 2.0, side)
    squares = 0
    for i, share in enumerate(shares.tolist()):
        own = (result[i] == pixels[i]).all(1).view(side, side)
        if 0.0 < own.float().mean() < 1.0:
            taken = ~own
            rows, columns = taken.any(1), taken.any(0)
            assert torch.equal(taken, rows[:, None] & columns)
            assert torch.equal(result[i][taken.flatten()], pixels[199 - i][taken.flatten()])
            assert share == pytest.approx(own.float().mean().item())
            squares += 1
        else:
            mean = share * pixels[i] + (1 - share) * pixels[199 - i]
            torch.testing.assert_close(result[i], mean, atol=1e-3, rtol=0)
    assert squares > 50 and (shares == 1).sum() > 20


def test_a_network_of_pixels_sees_mixed_pictures_in_training(build, make_batch, monkeypatch):
    monkeypatch.setitem(resnet.DEPTHS, "resnet50", [1, 1, 1, 1])
    cnn = {"backbone": "resnet50", "weights": "random", "crop": 32, "random_crops": False}
    method = build("pcmepp", {"mixing": 0.9, "image": {"encoder": "linear", "cnn": cnn}})
    pixels = torch.randint(256, (4, 40 * 40, 3), dtype=torch.uint8)
    padding = padded_rows(torch.ones(pixels.shape[:2], dtype=torch.bool))
    batch = replace(make_batch(range(4)), features=pixels, region_padding=padding)
    torch.stack(list(losses(method, batch).values())).sum().backward()
    assert method.image.encoder.cnn.network.network[0].embedder.convolution.weight.grad.any()
    seen = []
    method.image.encoder.cnn.network.register_forward_pre_hook(lambda _, given: seen.append(given))
    images, whole = method.encode_images(batch), method.eval().encode_images(batch)
    assert images.own_share.shape == (4,) and (images.own_share < 1).any()
    mixed_rows = (seen[0][0] != seen[1][0]).flatten(1).any(1)
    assert torch.equal(mixed_rows, images.own_share < 1)
    assert whole.parts().keys() == {"vectors", "log_variance"}
