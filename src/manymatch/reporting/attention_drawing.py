"""Attention and pairs of elements: shapes over the picture, and tables with shaded cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from manymatch.reporting.table import Block
from manymatch.results.sets import ElementPairs, ImageMap

_LEVELS, _DARKEST = 6, 0.84
"""The number of opacity steps of the veil, and the opacity over a cell without attention."""

_LEAST = 0.05
"""A box is drawn if it has at least this part of the weight of the strongest box."""


@dataclass(frozen=True)
class Outline:
    """A box in percent of the picture, and how strongly it is drawn (0..1)."""

    x: float
    y: float
    width: float
    height: float
    strength: float


@dataclass(frozen=True)
class Look:
    """The attention of one element.

    `frame` is the place of the picture in a square of 100 (x, y, width, height). A grid has
    `veils`, each an opacity and the path of the cells with this opacity in a square of `grid`.
    Boxes have `outlines`.
    """

    label: str
    frame: tuple[float, float, float, float]
    grid: int | None
    veils: list[tuple[float, str]]
    outlines: list[Outline]


def look(image_map: ImageMap, weights: Sequence[float], element: int) -> Look:
    """The drawing of an element (from 0) of an image with its `weights` after any pass."""
    strongest = max(range(len(weights)), key=weights.__getitem__)
    most, grid = weights[strongest], image_map.grid
    relative = [weight / most if most else 0.0 for weight in weights]
    region = f"region {strongest + 1} of {len(weights)}"
    veils, outlines = [], []
    if grid:
        row, column = divmod(strongest, grid)
        region = f"row {row + 1}, column {column + 1} of {grid}"
        levels = [round((_LEVELS - 1) * (1 - value)) for value in relative]
        for level in range(1, _LEVELS):
            if path := _cells(levels, grid, level):
                veils.append((round(_DARKEST * level / (_LEVELS - 1), 2), path))
    else:
        for (x1, y1, x2, y2), value in zip(image_map.boxes or [], relative, strict=True):
            if value >= _LEAST:
                x, y, width, height = (round(100 * n, 1) for n in (x1, y1, x2 - x1, y2 - y1))
                outlines.append(Outline(x, y, width, height, round(value, 2)))
        outlines.sort(key=lambda outline: outline.strength)  # the strongest box is on top
    across, down = (round(100 * side / max(image_map.size), 2) for side in image_map.size)
    label = f"Element {element + 1}: most, {100 * most:.0f}%, at {region}"
    frame = ((100 - across) / 2, (100 - down) / 2, across, down)
    return Look(label, frame, grid, veils, outlines)


def _cells(levels: list[int], side: int, level: int) -> str:
    """The cells of one level; neighbouring cells of a row are one rectangle."""
    path = ""
    for y in range(side):
        x = 0
        for cell, run in groupby(levels[y * side : (y + 1) * side]):
            width = len(list(run))
            if cell == level:
                path += f"M{x} {y}h{width}v1h-{width}z"
            x += width
    return path


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
    columns = [f"Text {number + 1}" for number in range(len(pairs.share[0]))]
    return [
        Heat(
            title,
            f"{title} of {name}",
            columns,
            [(f"Image {number + 1}", row) for number, row in enumerate(rows)],
        )
        for title, rows in (("Best pair", share), ("Mean cosine", cosine))
    ]
