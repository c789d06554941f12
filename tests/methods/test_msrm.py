"""MSRM's own terms: a naive loop over the paper's equations, and scores of both directions."""

from dataclasses import replace

import pytest
import torch
from small_methods import encode

from manymatch.evaluation.ranking.ranks import rank
from manymatch.methods import check_model
from manymatch.methods.shared.method import Embeddings
from manymatch.util.errors import ConfigError


def gaussians(n, m, size=16, seed=0):
    """Embeddings in double precision that need gradients."""
    generator = torch.Generator().manual_seed(seed)

    def made(count):
        mean = torch.randn(count, 1, size, generator=generator, dtype=torch.float64)
        spread = torch.randn(count, size, generator=generator, dtype=torch.float64)
        return Embeddings(
            (mean / mean.norm(dim=2, keepdim=True)).requires_grad_(),
            log_variance=spread.requires_grad_(),
        )

    return made(n), made(m)


def leaves(*embeddings):
    return [part for one in embeddings for part in (one.vectors, one.log_variance)]


def naive_one_way(method, queries, candidates, match):
    """L_d and L_h of one direction, unweighted, one query, candidate and hyperedge at a time."""
    mu, points = queries.vectors[:, 0], candidates.vectors[:, 0]
    var = queries.log_variance.exp()
    q, c = len(mu), len(points)
    d2 = [[((points[k] - mu[i]) ** 2 / var[i]).sum() for k in range(c)] for i in range(q)]

    def matching(logits):
        total = 0.0
        for i in range(q):
            weights = [torch.exp(z) for z in logits[i]]
            others = sum(weights[k] for k in range(c) if not match[i, k])
            for k in range(c):
                if match[i, k]:
                    total = total - torch.log(weights[k] / (weights[k] + others))
                else:
                    total = total - torch.log(1 - weights[k] / sum(weights))
        return total / (q * c)

    graph = method.hypergraph
    alpha = graph.alpha.log.exp() if graph.alpha is not None else method.settings.alpha

    def belongs(i, k):
        if match[i, k]:
            return torch.ones((), dtype=torch.float64)
        return torch.exp(-alpha * d2[i][k]) if alpha is not None else torch.zeros(()).double()

    def activated(layer, total):
        if method.settings.hypergraph_activation == "sigmoid":
            return torch.sigmoid(total)
        return total if layer is graph.layers[-1] else total.clamp(min=0)

    incidence = [[belongs(i, k) for i in range(q)] for k in range(c)]
    vertex = [sum(incidence[k]) for k in range(c)]
    edge = [sum(incidence[k][i] for k in range(c)) for i in range(q)]
    nodes = list(points)
    for layer in graph.layers:
        own = [layer.linear(node) for node in nodes]
        nodes = [
            activated(
                layer,
                sum(
                    incidence[k][i] * incidence[o][i] / edge[i] * own[o]
                    / torch.sqrt(vertex[k] * vertex[o])
                    for i in range(q)
                    for o in range(c)
                ),
            )
            for k in range(c)
        ]  # fmt: skip
    sharpness = graph.sharpness.log.exp()
    cosines = [[sharpness * (mu[i] @ u) / u.norm() for u in nodes] for i in range(q)]
    tau = method.tau.log.exp()
    return matching([[-tau * d for d in row] for row in d2]), matching(cosines)


@pytest.mark.parametrize(
    ("activation", "alpha", "image_index"),
    [
        ("sigmoid", 2.0, [0, 0, 1, 2, 2]),
        ("sigmoid", None, [0, 0, 1, 2, 2]),
        ("relu", 0.0, [0, 0, 1, 2, 2]),
        ("relu", 2.0, [0, 0]),
    ],
)
def test_both_losses_equal_the_naive_loop(build, make_batch, activation, alpha, image_index):
    # A small tau, since the naive loop takes the logarithm of 1 - P, inexact where P is near 1.
    settings = {"alpha": alpha, "tau": 0.5, "hypergraph_activation": activation}
    method = build("msrm", settings).double()
    images, texts = gaussians(max(image_index) + 1, len(image_index))
    batch = replace(make_batch([0]), image_index=torch.tensor(image_index))
    result = method.loss(images, texts, batch)
    match = torch.arange(len(images))[:, None] == batch.image_index
    forth = naive_one_way(method, images, texts, match)
    back = naive_one_way(method, texts, images, match.T)
    expected = {
        "distance": 0.8 * (forth[0] + back[0]),
        "hypergraph": forth[1] + back[1],
    }
    inputs = [*leaves(images, texts), method.tau.log, *method.hypergraph.parameters()]
    torch.testing.assert_close(result, expected, atol=1e-9, rtol=0)
    torch.testing.assert_close(
        torch.autograd.grad(sum(result.values()), inputs, materialize_grads=True),
        torch.autograd.grad(sum(expected.values()), inputs, materialize_grads=True),
        atol=1e-9,
        rtol=0,
    )


def test_each_direction_ranks_by_its_querys_gaussian(build, make_batch):
    method, batch = build("msrm").eval(), make_batch(range(4))
    with torch.no_grad():
        images, texts = encode(method, batch)
    v, t = images.vectors[:, 0], texts.vectors[:, 0]
    square = (v[:, None] - t[None]).square()
    by_image = (square / images.log_variance.exp()[:, None]).sum(2)
    by_text = (square / texts.log_variance.exp()[None]).sum(2)
    torch.testing.assert_close(method.score(images, texts), -by_image)
    torch.testing.assert_close(method.t2i_score(images, texts), -by_text)
    scores = {"score": method.score, "t2i_score": method.t2i_score}
    ranking = rank(**scores, images=images, texts=texts, image_index=batch.image_index, depth=3)
    assert torch.equal(ranking.i2t.items, by_image.argsort(1)[:, :3])
    assert torch.equal(ranking.t2i.items, by_text.T.argsort(1)[:, :3])


def test_retrieval_by_means_is_the_cosine_both_ways(build, make_batch):
    method, batch = build("msrm", {"inference": "mu"}).eval(), make_batch(range(3))
    images, texts = encode(method, batch)
    assert method.t2i_score is None
    expected = images.vectors[:, 0] @ texts.vectors[:, 0].T
    torch.testing.assert_close(method.score(images, texts), expected)


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
def test_retrieval_by_the_last_layer_takes_each_candidate_as_a_hypergraph(
    build, make_batch, activation
):
    """The score is that of the training hypergraph with one candidate, whatever the queries are."""
    settings = {"inference": "hypergraph", "hypergraph_activation": activation}
    method, batch = build("msrm", settings).double().eval(), make_batch(range(4))
    images, texts = gaussians(4, 6)
    alone = [
        replace(side, candidate=method.hypergraph.alone(side.vectors[:, 0]))
        for side in (images, texts)
    ]

    def one_by_one(queries, candidates):
        mu, points = queries.vectors[:, 0], candidates.vectors[:, 0]
        d2 = torch.rand(len(mu), 1, dtype=torch.float64)
        match = torch.arange(len(mu))[:, None] == 1
        columns = [method.hypergraph(mu, points[k : k + 1], d2, match) for k in range(len(points))]
        return torch.cat(columns, 1) / method.hypergraph.sharpness()

    torch.testing.assert_close(method.score(*alone), one_by_one(images, texts))
    torch.testing.assert_close(method.t2i_score(*alone), one_by_one(texts, images).T)
    made = encode(method.float(), batch)
    assert [side.candidate is None for side in made] == [False, False]
    part = encode(method, make_batch([2]))
    for whole, single in zip(made, part, strict=True):
        rows = slice(2, 3) if whole is made[0] else batch.image_index == 2
        torch.testing.assert_close(whole.candidate[rows], single.candidate)
    assert not any(side.candidate.requires_grad for side in encode(method.train(), batch))


def test_retrieval_by_the_last_layer_needs_a_trained_hypergraph():
    with pytest.raises(ConfigError, match="inference 'hypergraph' with hypergraph_weight 0"):
        check_model("msrm", {"inference": "hypergraph", "hypergraph_weight": 0.0})
