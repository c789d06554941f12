"""Where an element of an image's set looks, as shapes over the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manymatch.results.sets import ImageMap

_LEVELS, _DARKEST = 6, 0.84
"""Cells are veiled the more the less they are looked at, in so many steps."""

_LEAST = 0.05
"""Boxes that get less than this part of the strongest one's weight are not drawn."""


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
    """One element's map.

    `frame` is where the picture lies in a square of 100 (x, y, width, height). A grid has `veils`:
    an opacity and the path of the cells that have it, in a square of `grid`; boxes have `outlines`.
    """

    label: str
    frame: tuple[float, float, float, float]
    grid: int | None
    veils: list[tuple[float, str]]
    outlines: list[Outline]


def look(found: ImageMap, weights: Sequence[float], element: int) -> Look:
    """The drawing of an element (from 0) of an image by its `weights` after any pass."""
    strongest = max(weights)
    relative = [weight / strongest if strongest else 0.0 for weight in weights]
    return Look(
        label=_label(found.grid, weights, element),
        frame=_frame(*found.size),
        grid=found.grid,
        veils=_veils(relative, found.grid) if found.grid else [],
        outlines=[] if found.grid else _outlines(found, relative),
    )


def _label(grid: int | None, weights: Sequence[float], element: int) -> str:
    strongest = max(range(len(weights)), key=weights.__getitem__)
    if grid:
        row, column = divmod(strongest, grid)
        place = f"row {row + 1}, column {column + 1} of {grid}"
    else:
        place = f"region {strongest + 1} of {len(weights)}"
    return f"Element {element + 1}: most, {100 * weights[strongest]:.0f}%, at {place}"


def _frame(width: int, height: int) -> tuple[float, float, float, float]:
    side = max(width, height)
    across, down = round(100 * width / side, 2), round(100 * height / side, 2)
    return (100 - across) / 2, (100 - down) / 2, across, down


def _veils(relative: list[float], side: int) -> list[tuple[float, str]]:
    levels = [round((_LEVELS - 1) * (1 - value)) for value in relative]
    paths = [(level, _cells(levels, side, level)) for level in range(1, _LEVELS)]
    return [(round(_DARKEST * level / (_LEVELS - 1), 2), path) for level, path in paths if path]


def _cells(levels: list[int], side: int, level: int) -> str:
    """The cells of one level, neighbours in a row as one rectangle."""
    path = ""
    for y in range(side):
        row = [*levels[y * side : (y + 1) * side], -1]
        start = None
        for x, found in enumerate(row):
            if found == level and start is None:
                start = x
            elif found != level and start is not None:
                path += f"M{start} {y}h{x - start}v1h{start - x}z"
                start = None
    return path


def _outlines(found: ImageMap, relative: list[float]) -> list[Outline]:
    """The boxes that matter, weakest first, so that the strongest lie on top."""
    drawn = [
        Outline(
            x=round(100 * x1, 1),
            y=round(100 * y1, 1),
            width=round(100 * (x2 - x1), 1),
            height=round(100 * (y2 - y1), 1),
            strength=round(value, 2),
        )
        for (x1, y1, x2, y2), value in zip(found.boxes or [], relative, strict=True)
        if value >= _LEAST
    ]
    return sorted(drawn, key=lambda outline: outline.strength)
