"""Candidates of an engine, exact scores, and a proof."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_galleries import MakeModel, made_up

from manymatch.search.scan.engine import EngineScanner, QdrantEdge, upload
from manymatch.search.scan.scanner import Scanner
from manymatch.util.errors import ConfigError


@pytest.mark.parametrize(
    ("score", "elements", "kind"),
    [
        ("vsepp", 1, "random"),
        ("vsepp", 1, "duplicated"),
        ("vsepp", 1, "equal"),
        ("dive mil", 4, "random"),
        ("dive smooth_chamfer", 2, "random"),
        ("maxmatch topk", 2, "zero"),
        ("msrm", 1, "random"),
    ],
)
def test_a_result_of_an_engine_is_exact_where_it_says_so(
    small_model: MakeModel, tmp_path: Path, score: str, elements: int, kind: str
) -> None:
    model = small_model(score)
    gallery, queries = made_up(kind, 400, elements, 16, 0), made_up("random", 12, elements, 16, 1)
    engine = QdrantEdge(tmp_path / "engine", 32 if score == "msrm" else 16)
    upload(engine, model, gallery)
    expected = Scanner(model, gallery).top(queries, 5)
    for depth, most in ((10, 40), (10, 400)):
        answers = EngineScanner(model, gallery, engine, depth=depth, most=most).top(queries, 5)
        for hits, right in zip(answers, expected, strict=True):
            assert hits.exact == (hits.excess == 0) and (hits.exact or most == 40)
            if hits.exact:
                np.testing.assert_array_equal(hits.rows, right.rows)
                np.testing.assert_array_equal(hits.scores, right.scores)
            assert right.scores[0] <= max(hits.scores[0], hits.scores[-1] + hits.excess)
        assert kind == "equal" or most == 400 or any(hits.exact for hits in answers)


def test_scores_that_an_engine_cannot_bound_are_refused(
    small_model: MakeModel, tmp_path: Path
) -> None:
    engine, gallery = QdrantEdge(tmp_path / "engine", 16), made_up("random", 20, 1, 16, 0)
    with pytest.raises(ConfigError, match="engine"):
        upload(engine, small_model("pcme samples"), gallery)
    unequal = made_up("random", 20, 3, 16, 0, unequal=True)
    with pytest.raises(ConfigError, match="engine"):
        EngineScanner(small_model("dive mil"), unequal, engine)
