"""Codes of a gallery, and the comparison of a search with the scores of all items."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from manymatch import Model
from manymatch.evaluation.ensemble import reranked
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.answer import Side
from manymatch.search.scan.code_writer import write_codes
from manymatch.search.scan.codes import Codes
from manymatch.search.scan.exact import Hits


def codes_of(model: Model, gallery: Embeddings, side: Side, blocks: int = 1) -> Codes:
    with tempfile.TemporaryDirectory() as folder:
        size = -(-len(gallery) // blocks)
        runs = (
            gallery.rows(slice(start, min(start + size, len(gallery))))
            for start in range(0, len(gallery), size)
        )
        write_codes(Path(folder) / "codes", model, runs, side)
        return Codes(Path(folder) / "codes")


def all_scores(
    model: Model, gallery: Embeddings, queries: Embeddings, side: Side, beta: float | None = None
) -> Tensor:
    """`(q, n)`."""
    if beta is not None:
        sides = (gallery, queries) if side == "images" else (queries, gallery)
        with torch.inference_mode():
            scores = reranked(model.method.score, beta)(*sides).float()
        return scores.T if side == "images" else scores
    if side == "images":
        return model.score(gallery, queries).T
    return model.score(queries, gallery, "image")


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
    assert len(hits.rows) <= hits.reranked <= len(exact)
