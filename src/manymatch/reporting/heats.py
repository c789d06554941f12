"""Tables with shaded cells: which elements of two sets match, which words an element reads."""

from __future__ import annotations

import math

from manymatch.reporting.blocks import Block
from manymatch.results.sets import ElementPairs

PAIRS_NOTE = (
    "Over all pairs of an image and its caption: how often two elements are the most similar ones "
    "of the pair, and how similar the two are. If a single cell among the best pairs is dark, a "
    "similarity that uses only best pairs (MIL) ignores the other elements, and they are not "
    "trained. If elements are matched one to one (MaxMatch), and always the same ones, each row "
    "and each column of the cosines has one dark cell."
)


class Heat(Block):
    """A table of texts. Each cell has a shade from 0 to 1; `label` is read aloud."""

    title: str
    label: str
    columns: list[str]
    rows: list[tuple[str, list[tuple[str, float]]]]
    caption: bool = True


def pair_heats(pairs: ElementPairs, name: str) -> list[Heat]:
    """How often image element (row) and text element (column) are the best pair, and how similar
    the two are. `name` is that of the method."""
    share = [[(f"{100 * value:.0f}%", math.sqrt(value)) for value in row] for row in pairs.share]
    cosine = [
        [(f"{value:.2f}", min(max(value, 0.0), 1.0)) for value in row] for row in pairs.cosine
    ]
    columns = [f"Text {number}" for number in range(1, len(pairs.share[0]) + 1)]
    return [
        Heat(
            title,
            f"{title} of {name}",
            columns,
            [(f"Image {number}", row) for number, row in enumerate(rows, start=1)],
        )
        for title, rows in (("Best pair", share), ("Mean cosine", cosine))
    ]
