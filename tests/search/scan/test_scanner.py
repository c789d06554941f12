"""A scan gives the best items of the whole gallery, in a defined order."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_galleries import KINDS, SCORES, SETS, MakeModel, made_up
from torch import Tensor

from manymatch import Model
from manymatch.evaluation.rerank import reranked
from manymatch.methods.embeddings import Embeddings
from manymatch.search.scan.codes import Codes, Side
from manymatch.search.scan.hits import Hits
from manymatch.search.scan.scanner import Scanner
from manymatch.search.scan.source import double


TOLERANCE = {"msrm": 1e-4, "pcme samples": 0.02}
"""Of scores in float32. The expanded squares of distances of these two cancel each other, which
loses digits where a distance is small."""


def codes_of(model: Model, gallery: Embeddings, side: Side, blocks: int = 1) -> Codes:
    with tempfile.TemporaryDirectory() as folder:
        size = -(-len(gallery) // blocks)
        runs = (
            gallery.rows(slice(start, min(start + size, len(gallery))))
            for start in range(0, len(gallery), size)
        )
        Codes.write(Path(folder) / "codes", model, runs, side)
        return Codes.open(Path(folder) / "codes")


def all_scores(
    model: Model, gallery: Embeddings, queries: Embeddings, side: Side, beta: float | None = None
) -> Tensor:
    """`(q, n)`."""
    score = model.score if beta is None else reranked(model.score, beta)
    if side == "images":
        return score(gallery, queries).T
    if beta is None:
        return model.score(queries, gallery, "image")
    return score(queries, gallery)


def check(
    hits: Hits,
    single: Tensor,
    exact: Tensor,
    k: int,
    included: np.ndarray | None = None,
    least: float | None = None,
    tolerance: float = 1e-6,
) -> None:
    """Compare with brute force: scores in float32 (`single`) and rounded from float64 (`exact`)."""
    qualified = np.ones(len(exact), bool) if included is None else included.copy()
    if least is not None:
        qualified &= exact.numpy() >= np.float32(least)
    order = np.argsort(-exact.numpy(), kind="stable")
    order = order[qualified[order]][:k]
    np.testing.assert_array_equal(hits.rows, order)
    np.testing.assert_array_equal(hits.scores, exact.numpy()[order])
    np.testing.assert_allclose(hits.scores, single.numpy()[order], atol=tolerance, rtol=2e-6)
    assert hits.exact and len(hits.rows) <= hits.reranked <= len(exact)


@pytest.mark.parametrize("score", SCORES)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_scan_equals_brute_force(small_model: MakeModel, score: str, data: st.DataObject) -> None:
    model = small_model(score)
    draw = data.draw
    n, seed = draw(st.integers(1, 150)), draw(st.integers(0, 2**31))
    elements = draw(st.sampled_from([1, 2, 4])) if score in SETS else 1
    of_query = draw(st.sampled_from([elements, 3])) if score in SETS else 1
    size = 16 if score == "pcme samples" else draw(st.sampled_from([1, 16, 40, 256]))
    kind, side = draw(st.sampled_from(KINDS)), draw(st.sampled_from(["images", "texts"]))
    unequal = score in SETS and draw(st.booleans())
    gallery = made_up(kind, n, elements, size, seed, unequal=unequal)
    queries = made_up(draw(st.sampled_from(KINDS)), 8, of_query, size, seed + 1, unequal=unequal)
    k = draw(st.sampled_from([1, 5, 20, 200]))
    included = np.arange(n) % 3 > 0 if draw(st.booleans()) else None

    single = all_scores(model, gallery, queries, side)
    exact = all_scores(model, double(gallery), double(queries), side)
    least = float(exact.median()) if draw(st.booleans()) else None
    codes = codes_of(model, gallery, side, blocks=draw(st.integers(1, 3)))
    for scanner in (Scanner(model, gallery, codes, side), Scanner(model, gallery, side=side)):
        for query, hits in enumerate(scanner.top(queries, k, included, least)):
            check(hits, single[query], exact[query], k, included, least, TOLERANCE.get(score, 1e-6))
