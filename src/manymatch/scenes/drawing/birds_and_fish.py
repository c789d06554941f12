"""Birds, ducks and fish."""

from __future__ import annotations

from dataclasses import replace

from manymatch.scenes.drawing.four_legged import eye
from manymatch.scenes.drawing.pen import Pen


def bird(pen: Pen, kind: str, state: str | None) -> None:
    """A small bird with a pointed beak, on its feet or with wings spread."""
    flying = state == "flying"
    y = 0.62 if flying else 0.5
    if not flying:
        for x in (0.46, 0.58):
            pen.line([(x, 0.7), (x, 0.97), (x + 0.1, 0.97)], "beak", 0.04)
    pen.poly([(0.25, y - 0.02), (0.0, y - 0.1), (0.02, y + 0.18), (0.3, y + 0.16)], "shade")
    if flying:
        pen.poly([(0.55, y), (0.62, 0.0), (0.75, y)], "shade")
    pen.oval((0.48, y), (0.30, 0.27))
    pen.oval((0.52, y + 0.1), (0.2, 0.14), "light", outline=False)
    pen.poly([(0.86, y - 0.27), (1.0, y - 0.17), (0.86, y - 0.09)], "beak")
    pen.disc(0.74, y - 0.18, 0.19)
    eye(pen, 0.77, y - 0.22, 0.045, False)
    if flying:
        pen.poly([(0.3, y), (0.18, 0.02), (0.40, 0.12), (0.6, y + 0.05)])
    else:
        pen.poly([(0.58, y - 0.1), (0.5, y + 0.16), (0.14, y + 0.12), (0.35, y - 0.08)], "shade")


def duck(pen: Pen, kind: str, state: str | None) -> None:
    """A duck with a flat orange bill: on webbed feet, swimming, or flying."""
    flying = state == "flying"
    y = 0.62
    if state == "standing":
        for x in (0.40, 0.54):
            pen.line([(x, 0.8), (x, 0.97)], "beak", 0.05)
            pen.poly([(x - 0.03, 0.93), (x + 0.13, 1.0), (x - 0.06, 1.0)], "beak")
    pen.poly([(0.12, y + 0.1), (0.0, y - 0.22), (0.3, y - 0.05)])
    neck = [(0.68, y), (0.74, 0.28)]
    pen.limb(neck, "main", 0.17)
    pen.oval((0.42, y), (0.36, 0.25))
    pen.line(neck, "main", 0.17)
    pen.line([(0.66, 0.47), (0.79, 0.45)], "white", 0.06)
    pen.poly([(0.84, 0.17), (1.0, 0.24), (0.98, 0.32), (0.84, 0.3)], "beak")
    pen.disc(0.76, 0.2, 0.17)
    eye(pen, 0.79, 0.16, 0.04, False)
    if flying:
        pen.poly([(0.25, y), (0.1, 0.0), (0.36, 0.08), (0.58, y + 0.02)], "shade")
    else:
        pen.poly([(0.58, y - 0.1), (0.52, y + 0.12), (0.16, y + 0.06), (0.3, y - 0.1)], "shade")
    if state == "swimming":
        for x in (0.08, 0.42, 0.76):
            pen.line([(x, 0.9), (x + 0.1, 0.96), (x + 0.2, 0.9)], "white", 0.05)


def fish(pen: Pen, kind: str, state: str | None) -> None:
    """A fish in the water, or leaping out of it."""
    if state == "jumping":
        for x, y in ((0.15, 0.95), (0.35, 1.0), (0.02, 0.78), (0.3, 0.86)):
            pen.disc(x, y, 0.05, "glass")
        pen = replace(pen, tilt=-0.7)
    y = 0.5
    pen.poly([(0.26, y), (0.0, y - 0.34), (0.06, y), (0.0, y + 0.34)], "shade")
    pen.poly([(0.4, y - 0.3), (0.55, y - 0.5), (0.75, y - 0.25)], "shade")
    pen.oval((0.58, y), (0.40, 0.33))
    pen.poly([(0.55, y + 0.02), (0.40, y + 0.2), (0.58, y + 0.18)], "light")
    pen.line([(0.76, y - 0.24), (0.71, y), (0.76, y + 0.22)], "ink")
    eye(pen, 0.84, y - 0.09, 0.05, False)


DRAWINGS = {"bird": bird, "duck": duck, "fish": fish}
