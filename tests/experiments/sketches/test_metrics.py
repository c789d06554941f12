"""The metrics of zero-shot retrieval against loops over their definitions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from manymatch.experiments.sketch_training import CUT, NAMES, retrieval
from manymatch.util.errors import DivergenceError


def naive(queries: Tensor, labels: Tensor, gallery: Tensor, of_gallery: Tensor) -> dict[str, float]:
    totals = dict.fromkeys(NAMES, 0.0)
    for query, label in zip(queries, labels.tolist(), strict=True):
        scored = [
            (-float(query @ image), other == label, other)
            for image, other in zip(gallery, of_gallery.tolist(), strict=True)
        ]
        hits = [hit for _, hit, _ in sorted(scored, key=lambda entry: entry[:2])]
        right = sum(hits)

        def gained(most: int, hits: list[bool] = hits) -> float:
            return sum(sum(hits[: k + 1]) / (k + 1) for k in range(min(most, len(hits))) if hits[k])

        near = sum(hits[:CUT])
        totals["map"] += gained(len(hits)) / right
        totals["map_at_200"] += gained(CUT) / near if near else 0.0
        totals["map_at_200_r"] += gained(CUT) / min(right, CUT)
        totals["p_at_200"] += near / CUT
    return {name: 100 * value / len(queries) for name, value in totals.items()}


def made(n: int, m: int, classes: int, steps: int | None = None) -> tuple[Tensor, ...]:
    """Coordinates in `steps` make many equal scores."""
    generator = torch.Generator().manual_seed(n + m)
    queries, gallery = (
        torch.randn(count, 4, generator=generator, dtype=torch.float64) for count in (n, m)
    )
    if steps:
        queries, gallery = (queries * steps).round() / 8, (gallery * steps).round() / 8
    labels = torch.randint(classes, (n,), generator=generator)
    return queries, labels, gallery, torch.arange(m) % classes


@pytest.mark.parametrize(
    "sizes", [(1, 3, 1), (7, 30, 3), (9, 450, 2), (5, 230, 40), (8, 300, 3, 2), (6, 60, 2, 1)]
)
def test_the_metrics_are_those_of_a_loop(sizes: tuple[int, ...]) -> None:
    given = made(*sizes)
    assert retrieval(*given) == pytest.approx(naive(*given), abs=1e-9)
    with pytest.raises(DivergenceError):
        retrieval(given[0] * torch.nan, *given[1:])


@pytest.mark.parametrize("scores", [1, 100, 1301])
def test_blocks_equal_the_whole(scores: int) -> None:
    given = made(23, 400, 5, steps=2)
    assert retrieval(*given, scores=scores) == pytest.approx(retrieval(*given), abs=1e-9)
