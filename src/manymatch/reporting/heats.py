"""Tables whose cells are shaded: which elements of two sets meet, what an element reads."""

from __future__ import annotations

import math
from dataclasses import dataclass

from manymatch.results.sets import ElementPairs


@dataclass(frozen=True)
class Heat:
    """What each cell says, and how dark it is (0..1)."""

    title: str
    columns: list[str]
    rows: list[tuple[str, list[tuple[str, float]]]]


def pair_heats(pairs: ElementPairs) -> list[Heat]:
    """How often image element (row) and text element (column) are the best pair, and how similar
    they are."""
    share = [[(f"{100 * value:.0f}%", math.sqrt(value)) for value in row] for row in pairs.share]
    cosine = [
        [(f"{value:.2f}", min(max(value, 0.0), 1.0)) for value in row] for row in pairs.cosine
    ]
    columns = [f"Text {number}" for number in range(1, len(pairs.share[0]) + 1)]
    return [
        Heat(title, columns, [(f"Image {number}", row) for number, row in enumerate(table, 1)])
        for title, table in (("Best pair", share), ("Mean cosine", cosine))
    ]
