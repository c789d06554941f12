"""A scan gives the best items of the whole gallery."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn.functional import normalize

from manymatch import Model
from manymatch.methods.embeddings import Embeddings
from manymatch.search.scan.scanner import Scanner

MakeModel = Callable[[str, dict[str, Any]], Model]


def test_the_best_items_come_first(small_model: MakeModel) -> None:
    model = small_model("dive", {})
    torch.manual_seed(0)
    gallery = Embeddings(normalize(torch.randn(50, 4, 16), dim=2))
    queries = Embeddings(normalize(torch.randn(3, 4, 16), dim=2))
    scores = model.score(gallery, queries).numpy()
    included = np.arange(50) % 3 > 0
    for query, hits in enumerate(Scanner(model, gallery).top(queries, 5, included, -1.0)):
        order = np.argsort(-scores[:, query], kind="stable")
        np.testing.assert_array_equal(hits.rows, order[included[order]][:5])
        np.testing.assert_allclose(hits.scores, scores[hits.rows, query], atol=1e-6)
