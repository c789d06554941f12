"""Scores by which methods rank, and made-up galleries of all kinds."""

import numpy as np
import torch
from torch.nn.functional import normalize

from manymatch.evaluation.ensemble import reranked
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.search.scan.exact import double

_OF_SETS = {
    f"dive {name}": ("dive", {"similarity": {"name": name}})
    for name in ("cosine", "mil", "mp", "chamfer", "smooth_chamfer")
}
_RULES = {
    f"maxmatch {rule}": ("maxmatch", {"similarity": {"name": "max_match", "inference": rule}})
    for rule in ("matching", "topk", "max", "smooth_chamfer")
}
SETS = [*_OF_SETS, *_RULES, "pvse"]
SCORES = {
    **_OF_SETS,
    **_RULES,
    **{name: (name, {}) for name in ("vsepp", "vse_infinity", "swamp", "swamp_video")},
    **{name: (name, {}) for name in ("pvse", "cora", "msrm", "pcme", "pcmepp")},
    "msrm mu": ("msrm", {"inference": "mu"}),
    "msrm hypergraph": ("msrm", {"inference": "hypergraph"}),
    "pcme samples": ("pcme", {"inference": "samples", "samples": 3}),
}
"""Every score by which a method may rank; the methods with their default settings, and others."""

KINDS = ["random", "collapsed", "equal", "duplicated", "zero", "near", "long"]


def made_up(kind, n, elements, size, seed, *, unequal=False):
    """`n` items with a Gaussian's variances, and a candidate's vector that is not the query's;
    `unequal` sets have 1 to `elements` elements."""
    torch.manual_seed(seed)
    vectors = normalize(torch.randn(n, elements, size), dim=2)
    if kind == "collapsed":  # all elements of a set are the same vector
        vectors = vectors[:, :1].expand(n, elements, size).clone()
    elif kind == "equal":
        vectors = vectors[:1].expand(n, elements, size).clone()
    elif kind == "duplicated":
        vectors = vectors[torch.randint(max(1, n // 5), (n,))]
    elif kind == "zero":
        vectors[torch.rand(n, elements) < 0.3] = 0
    elif kind == "near":  # differences of the size of a rounding error
        vectors = normalize(vectors[:1] + 1e-7 * torch.randn(n, elements, size), dim=2)
    elif kind == "long":
        vectors = vectors * torch.rand(n, elements, 1) * 3
    mask = None
    if unequal:
        mask = torch.arange(elements) < torch.randint(1, elements + 1, (n, 1))
        vectors = vectors * mask[:, :, None]
    return Embeddings(
        vectors,
        log_variance=torch.randn(n, size) / 2 - 2,
        candidate=vectors[:, -1].roll(1, 1),
        mask=mask,
    )


def add_entities(texts):
    """The texts with one to three entities each."""
    counts = torch.randint(1, 4, (len(texts),))
    owners = torch.arange(len(texts)).repeat_interleave(counts)
    entities = normalize(torch.randn(len(owners), texts.vectors.shape[2]), dim=1)
    return Embeddings(texts.vectors, entities=entities, entity_caption=owners)


TOLERANCE = {"msrm": 1e-4, "pcmepp": 1e-4, "pcme samples": 0.02}
"""Of scores in float32. The expanded squares of distances of these two cancel each other, which
loses digits where a distance is small."""


def all_scores(model, gallery, queries, side, beta=None):
    """`(q, n)`."""
    sides = (gallery, queries) if side == "images" else (queries, gallery)
    with torch.inference_mode():
        if beta is not None:
            scores = reranked(model.method.score, beta)(*sides).float()
        else:
            scores = model.score(*sides, "text" if side == "images" else "image")
    return (scores.T if side == "images" else scores).numpy()


def compare(
    scanner,
    gallery,
    queries,
    model,
    k,
    side="images",
    beta=None,
    included=None,
    below=False,
    tolerance=1e-6,
):
    """Compare a search with the scores of all items, in float32 and rounded from float64.

    Args:
        below: leave out scores below the median.
    """
    single = all_scores(model, gallery, queries, side, beta)
    exact = all_scores(model, double(gallery), double(queries), side, beta)
    least = float(np.median(exact)) if below else None
    found = scanner.top(queries, k, included, least)
    for hits, ours, scores in zip(found, single, exact, strict=True):
        np.testing.assert_array_equal(hits.scores, scores[hits.rows])
        if not hits.exact:
            continue
        qualified = np.ones(len(scores), bool) if included is None else included.copy()
        if least is not None:
            qualified &= scores >= np.float32(least)
        order = np.argsort(-scores, kind="stable")
        order = order[qualified[order]][:k]
        np.testing.assert_array_equal(hits.rows, order)
        np.testing.assert_array_equal(hits.scores, scores[order])
        np.testing.assert_allclose(hits.scores, ours[order], atol=tolerance, rtol=2e-6)
        assert len(hits.rows) <= hits.reranked <= len(scores)
    return found
