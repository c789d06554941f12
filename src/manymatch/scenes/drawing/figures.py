"""Birds, plants, buildings, furniture, toys, small things and vehicles, looking right.

`figures.csv` lists their strokes from back to front, one a row:

- `state`: the state in which the stroke is drawn; `not lit` means all other states, and an empty
  cell means every state.
- `colour`: a name that `Pen` knows, or red, green and blue from 0 to 255.
- `numbers`: points x y. They are the corners of a `rect`, the centre and the radii of an `oval` or
  `arch`, and the centre and the radius of a `disc` or `eye`.
- `size`: the width of a `line` or `limb`, and the turn of an `oval`.
- `outline`: `no` for a shape without an outline.

Objects whose drawing depends on the proportions of their box are code.
"""

import csv
import math
from pathlib import Path

from manymatch.scenes.drawing.animals import eye
from manymatch.scenes.drawing.pen import RGB, Pen, Point

Stroke = tuple[str, str, str | RGB, list[Point], float, float, bool]
"""State, shape, colour, points, radius, size, and whether there is an outline."""


def _strokes() -> dict[str, list[Stroke]]:
    """The strokes of each kind."""
    strokes: dict[str, list[Stroke]] = {}
    with Path(__file__).with_name("figures.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            numbers = [float(number) for number in row["numbers"].split()]
            points = list(zip(numbers[::2], numbers[1::2], strict=False))
            red, *others = row["colour"].split()
            colour: str | RGB = (int(red), int(others[0]), int(others[1])) if others else red
            drawn = colour, points, numbers[-1], float(row["size"] or 0), row["outline"] != "no"
            strokes.setdefault(row["kind"], []).append((row["state"], row["shape"], *drawn))
    return strokes


_STROKES = _strokes()


def figure(pen: Pen, kind: str, state: str | None) -> None:
    """Draw an object whose strokes are in the table."""
    for drawn_in, shape, colour, points, radius, size, outline in _STROKES[kind]:
        named = drawn_in.removeprefix("not ")
        if named and (state == named) != (drawn_in == named):
            continue
        match shape:
            case "poly":
                pen.poly(points, colour, outline)
            case "rect":
                (x1, y1), (x2, y2) = points
                pen.rect(x1, y1, x2, y2, colour, outline)
            case "oval":
                pen.oval(points[0], points[1], colour, outline, size)
            case "disc":
                pen.disc(*points[0], radius, colour, outline)
            case "eye":
                eye(pen, *points[0], radius, False)
            case "line":
                pen.line(points, colour, size)
            case "limb":
                pen.limb(points, colour, size)
            case "arch":
                pen.arch(points[0], points[1], colour)


def umbrella(pen: Pen, kind: str, state: str | None) -> None:
    if state == "closed":
        pen.line([(0.5, 0.0), (0.5, 0.94)], "ink", 0.03)
        pen.poly([(0.5, 0.05), (0.95, 0.62), (0.62, 0.70), (0.38, 0.70), (0.05, 0.62)])
        pen.line([(0.5, 0.08), (0.5, 0.66)], "shade")
        pen.line([(0.5, 0.8), (0.5, 0.94), (0.75, 0.98), (0.9, 0.9)], "wood", 0.04)
        return
    pen.line([(0.5, 0.0), (0.5, 0.98)], "ink", 0.03)
    depth = 0.42 / pen.stretch
    pen.arch((0.5, depth), (0.5, depth))
    for x in (0.17, 0.5, 0.83):
        pen.arch((x, depth), (0.165, depth * 0.25), "shade")
    for x in (0.33, 0.67):
        pen.line([(0.5, 0.0), (x, depth * 0.95)], "ink")


def bicycle(pen: Pen, kind: str, state: str | None) -> None:
    for x in (0.22, 0.78):
        pen.disc(x, 0.67, 0.32, "tyre")
        pen.disc(x, 0.67, 0.255, (226, 230, 234))
        for k in range(4):
            dx, dy = math.cos(k * math.pi / 4), math.sin(k * math.pi / 4)
            w = 0.25 * pen.stretch
            pen.line([(x - dx * w, 0.67 - dy * 0.25), (x + dx * w, 0.67 + dy * 0.25)], "metal")
    for path in (
        [(0.22, 0.67), (0.36, 0.28), (0.70, 0.26), (0.47, 0.68), (0.22, 0.67)],
        [(0.36, 0.28), (0.47, 0.68)],
        [(0.78, 0.67), (0.67, 0.12)],
    ):
        pen.limb(path, "main", 0.055)
    pen.limb([(0.26, 0.18), (0.42, 0.18)], "ink", 0.06)
    pen.line([(0.36, 0.28), (0.34, 0.18)], "ink", 0.04)
    pen.limb([(0.60, 0.08), (0.67, 0.11), (0.76, 0.05)], "ink", 0.04)
    pen.disc(0.47, 0.68, 0.07, "metal")


DRAWINGS = dict.fromkeys(_STROKES, figure) | {"umbrella": umbrella, "bicycle": bicycle}
