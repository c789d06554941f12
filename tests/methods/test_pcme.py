"""PCME's own terms: match probabilities from samples, and scores that depend on nothing else."""

import torch
from small_methods import encode, losses

import manymatch.methods.pcme as pcme


def probability(method, seen, read):
    """Mean over all pairs of samples of sigmoid(-a ||x - y|| + b), one pair at a time."""
    scale, shift = method.scale(), method.shift
    pairs = [torch.sigmoid(shift - scale * (x - y).norm()) for x in seen for y in read]
    return sum(pairs) / len(pairs)


def drawn(embeddings, noise):
    spread = (embeddings.log_variance / 2).exp()
    return embeddings.vectors + spread[:, None] * noise


def loss_and_samples(method, images, texts, batch):
    """The terms of the loss, and the three samples of each image and caption that they are of."""
    torch.manual_seed(7)
    terms = method.loss(images, texts, batch)
    torch.manual_seed(7)
    seen = drawn(images, torch.randn(len(images), 3, 16))
    return terms, seen, drawn(texts, torch.randn(len(texts), 3, 16))


def test_the_loss_is_that_of_the_match_probabilities(build, make_batch):
    method = build("pcme", {"samples": 3, "kl_weight": 0.1, "log_variance": -3.0, "shift": 10.0})
    batch = make_batch([0, 1])
    images, texts = encode(method, batch)
    result, seen, read = loss_and_samples(method, images, texts, batch)
    total = 0.0
    for i, x in enumerate(seen):
        for j, y in enumerate(read):
            p = probability(method, x, y)
            total = total - torch.log(p if batch.image_index[j] == i else 1 - p)
    n_pairs = len(images) * len(texts)
    torch.testing.assert_close(result["match"], total / n_pairs, rtol=1e-4, atol=1e-5)
    kl = sum(
        (one.vectors[:, 0] ** 2 + one.log_variance.exp() - 1 - one.log_variance).sum() / 2
        for one in (images, texts)
    )
    # The released code adds 0.1 kl to a sum over pairs that counts each pair twice.
    torch.testing.assert_close(result["kl"], 0.1 * kl / (2 * n_pairs))


def test_uniformity_joins_with_the_share_of_the_released_code(build, make_batch):
    settings = {"samples": 3, "kl_weight": 0.0, "uniformity_weight": 10.0}
    method, batch = build("pcme", settings), make_batch([0, 1])
    images, texts = encode(method, batch)
    result, seen, read = loss_and_samples(method, images, texts, batch)
    assert result.keys() == {"match", "uniformity"}
    rows = [*seen.flatten(0, 1), *read.flatten(0, 1)]
    near = [torch.exp(-2 * (x - y).square().sum()) for i, x in enumerate(rows) for y in rows[:i]]
    expected = 10 * torch.log(sum(near) / len(near)) / (2 * len(images) * len(texts))
    torch.testing.assert_close(result["uniformity"], expected, rtol=1e-4, atol=1e-5)


def test_the_sum_is_the_released_total_of_which_the_default_is_the_mean(build, make_batch):
    batch = make_batch([0, 1])
    means, sums = (
        losses(build("pcme", {"uniformity_weight": 10.0, "reduction": kind}), batch)
        for kind in ("mean", "sum")
    )
    terms = 2 * len(batch.image_ids) * len(batch.caption_ids)
    torch.testing.assert_close(sums, {name: terms * term for name, term in means.items()})


def test_uniformity_compares_a_bounded_number_of_samples(build, make_batch, monkeypatch):
    monkeypatch.setattr(pcme, "_SAMPLES_COMPARED", 4)
    compared = []
    monkeypatch.setattr(pcme, "uniformity", lambda rows: compared.append(rows) or rows.sum())
    losses(build("pcme", {"uniformity_weight": 10.0}), make_batch(range(3)))
    (rows_,) = compared
    assert rows_.shape == (4, 16)
    assert len(rows_.unique(dim=0)) == 4


def test_scores_by_samples_are_log_match_probabilities(build, make_batch, monkeypatch):
    method = build("pcme", {"samples": 3, "inference": "samples", "log_variance": -3.0}).eval()
    with torch.no_grad():
        images, texts = encode(method, make_batch(range(4)))
    seen, read = drawn(images, method.noise[0]), drawn(texts, method.noise[1])
    with torch.no_grad():
        expected = [[probability(method, x, y).log() for y in read] for x in seen]
        whole = method.score(images, texts)
    torch.testing.assert_close(whole, torch.tensor(expected), rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(pcme, "_DISTANCES_AT_ONCE", 1)  # an image at a time
    torch.testing.assert_close(method.score(images, texts), whole)
    block = method.score(images.rows(slice(1, 3)), texts.rows(slice(0, 2)))
    torch.testing.assert_close(block, whole[1:3, :2])
