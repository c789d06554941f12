"""Cars, buses, trucks, bicycles, wagons, boats and planes, looking right."""

import math

from manymatch.scenes.drawing.pen import Pen


def _wheel(pen: Pen, x: float, y: float, r: float) -> None:
    pen.disc(x, y, r, "tyre")
    pen.disc(x, y, r * 0.5, "metal")


def car(pen: Pen, kind: str, state: str | None) -> None:
    pen.poly([(0.2, 0.42), (0.32, 0.02), (0.66, 0.02), (0.8, 0.42)])
    pen.poly([(0.27, 0.40), (0.36, 0.12), (0.48, 0.12), (0.48, 0.40)], "glass")
    pen.poly([(0.53, 0.40), (0.53, 0.12), (0.63, 0.12), (0.73, 0.40)], "glass")
    pen.poly([(0.0, 0.5), (0.04, 0.42), (0.84, 0.42), (0.99, 0.52), (1.0, 0.8), (0.0, 0.8)])
    pen.line([(0.5, 0.44), (0.5, 0.78)], "shade")
    pen.line([(0.54, 0.53), (0.59, 0.53)], "ink", 0.03)
    pen.disc(0.96, 0.58, 0.07, "lit")
    for x in (0.22, 0.78):
        _wheel(pen, x, 0.79, 0.2)


def bus(pen: Pen, kind: str, state: str | None) -> None:
    pen.rect(0.0, 0.02, 1.0, 0.86)
    for k in range(4):
        pen.rect(0.05 + 0.19 * k, 0.14, 0.20 + 0.19 * k, 0.42, "glass")
    pen.rect(0.83, 0.14, 0.98, 0.84, "glass")
    pen.line([(0.905, 0.14), (0.905, 0.84)], "ink")
    pen.rect(0.02, 0.54, 0.80, 0.62, "light", False)
    for x in (0.2, 0.7):
        _wheel(pen, x, 0.85, 0.145)


def truck(pen: Pen, kind: str, state: str | None) -> None:
    pen.rect(0.0, 0.0, 0.64, 0.74, "light")
    pen.line([(0.21, 0.04), (0.21, 0.70)], "main")
    pen.line([(0.43, 0.04), (0.43, 0.70)], "main")
    pen.rect(0.0, 0.70, 1.0, 0.80, "dark")
    pen.poly([(0.68, 0.76), (0.68, 0.18), (0.86, 0.18), (0.96, 0.46), (1.0, 0.50), (1.0, 0.76)])
    pen.poly([(0.74, 0.44), (0.74, 0.26), (0.84, 0.26), (0.91, 0.44)], "glass")
    for x in (0.14, 0.34, 0.82):
        _wheel(pen, x, 0.83, 0.165)


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


def wagon(pen: Pen, kind: str, state: str | None) -> None:
    """A wagon, open at the top. Its contents are drawn before the wagon."""
    pen.poly([(0.0, 0.25), (1.0, 0.25), (0.94, 0.72), (0.06, 0.72)])
    for y in (0.40, 0.56):
        pen.line([(0.03, y), (0.97, y)], "shade")
    for x in (0.24, 0.76):
        _wheel(pen, x, 0.76, 0.24)


def boat(pen: Pen, kind: str, state: str | None) -> None:
    pen.line([(0.58, 0.02), (0.58, 0.8)], "wood", 0.03)
    pen.poly([(0.61, 0.03), (0.61, 0.66), (0.99, 0.66)], "white")
    pen.poly([(0.55, 0.14), (0.55, 0.66), (0.30, 0.66)], "light")
    pen.poly([(0.0, 0.72), (1.0, 0.72), (0.86, 0.97), (0.14, 0.97)])
    pen.line([(0.04, 0.79), (0.96, 0.79)], "light", 0.03)


def plane(pen: Pen, kind: str, state: str | None) -> None:
    y = 0.5 if state == "flying" else 0.42
    pen.poly([(0.02, y - 0.44), (0.12, y - 0.44), (0.26, y - 0.06), (0.06, y - 0.04)], "shade")
    pen.poly([(0.55, y - 0.08), (0.40, y - 0.36), (0.47, y - 0.36), (0.70, y - 0.08)], "shade")
    pen.oval((0.52, y), (0.48, 0.2))
    pen.arch((0.86, y - 0.02), (0.11, 0.13), "glass")
    for k in range(6):
        pen.disc(0.28 + 0.09 * k, y - 0.04, 0.045, "glass")
    pen.poly([(0.38, y + 0.06), (0.64, y + 0.06), (0.38, y + 0.46), (0.28, y + 0.46)], "light")
    if state != "flying":
        for x in (0.34, 0.74):
            pen.line([(x, y + 0.16), (x, 0.88)], "ink", 0.04)
            _wheel(pen, x, 0.91, 0.09)


_ALL = (car, bus, truck, bicycle, wagon, boat, plane)
DRAWINGS = {drawing.__name__: drawing for drawing in _ALL}
