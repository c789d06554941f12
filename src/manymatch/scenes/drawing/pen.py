"""A pen that draws in the box of one object, with coordinates in the unit square."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from PIL.ImageDraw import ImageDraw

from manymatch.scenes.world import Box

RGB = tuple[int, int, int]
Point = tuple[float, float]

INK: RGB = (22, 22, 28)
FIXED: dict[str, RGB] = {
    "ink": INK,
    "white": (255, 255, 255),
    "glass": (188, 226, 244),
    "water": (84, 160, 220),
    "lit": (255, 232, 90),
    "dark": (58, 58, 78),
    "tyre": (48, 48, 54),
    "metal": (176, 180, 188),
    "wood": (158, 106, 58),
    "plank": (196, 146, 88),
    "leaf": (70, 160, 70),
    "beak": (247, 160, 30),
    "pinkish": (244, 160, 170),
    "jeans": (52, 72, 128),
    "apple": (220, 50, 50),
}
_ROUND = [(math.cos(2 * math.pi * k / 28), math.sin(2 * math.pi * k / 28)) for k in range(28)]
OUTLINE = 0.006
"""Width of outlines as a fraction of the image."""


def placed(
    points: Iterable[Point], x: float, y: float, width: float = 1.0, height: float = 1.0
) -> list[Point]:
    """Return `points` in units of `width` and `height` from (x, y)."""
    return [(x + dx * width, y + dy * height) for dx, dy in points]


def shaded(colour: RGB, factor: float) -> RGB:
    """Return a darker colour (factor below 1) or a lighter colour (factor above 1)."""
    if factor <= 1:
        r, g, b = (round(c * factor) for c in colour)
    else:
        r, g, b = (round(255 - (255 - c) * (2 - factor)) for c in colour)
    return r, g, b


@dataclass(frozen=True)
class Pen:
    """Draws in the box of an object, from (0, 0), the upper left corner, to (1, 1).

    Objects look to the right, and are `mirrored` if they face left. A colour is an RGB triple, a
    name in `FIXED`, or `main`, `shade` or `light` for shades of the object's colour. `tilt` rotates
    everything about the centre, in radians.
    """

    draw: ImageDraw
    box: Box
    pixels: int
    """Width and height of the canvas."""
    main: RGB = (160, 160, 160)
    mirrored: bool = False
    tilt: float = 0.0

    @property
    def stretch(self) -> float:
        """Height of the box divided by its width."""
        return self.box.height / self.box.width

    def rgb(self, colour: str | RGB) -> RGB:
        if not isinstance(colour, str):
            return colour
        own = {"main": 1.0, "shade": 0.72, "light": 1.45}
        return shaded(self.main, own[colour]) if colour in own else FIXED[colour]

    def point(self, x: float, y: float) -> Point:
        """Return a point of the box in pixels of the canvas."""
        if self.tilt:
            dx, dy = (x - 0.5) * self.box.width, (y - 0.5) * self.box.height
            sin, cos = math.sin(self.tilt), math.cos(self.tilt)
            x = 0.5 + (dx * cos - dy * sin) / self.box.width
            y = 0.5 + (dx * sin + dy * cos) / self.box.height
        x = 1 - x if self.mirrored else x
        return (
            (self.box.x1 + x * self.box.width) * self.pixels,
            (self.box.y1 + y * self.box.height) * self.pixels,
        )

    def poly(self, points: Iterable[Point], fill: str | RGB = "main", outline: bool = True) -> None:
        path = [self.point(x, y) for x, y in points]
        width = max(1, round(OUTLINE * self.pixels))
        self.draw.polygon(path, self.rgb(fill), INK if outline else None, width if outline else 1)

    def oval(
        self,
        centre: Point,
        radii: Point,
        fill: str | RGB = "main",
        outline: bool = True,
        turn: float = 0.0,
    ) -> None:
        """Draw an ellipse, rotated by `turn` radians in the proportions of the box."""
        (cx, cy), (rx, ry), k = centre, radii, self.stretch
        sin, cos = math.sin(turn), math.cos(turn)
        points = (
            (cx + rx * u * cos - ry * k * v * sin, cy + (rx / k) * u * sin + ry * v * cos)
            for u, v in _ROUND
        )
        self.poly(points, fill, outline)

    def disc(
        self, x: float, y: float, r: float, fill: str | RGB = "main", outline: bool = True
    ) -> None:
        """Draw a circle. The radius is a fraction of the height of the box."""
        self.oval((x, y), (r * self.stretch, r), fill, outline)

    def rect(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        fill: str | RGB = "main",
        outline: bool = True,
    ) -> None:
        self.poly(((x1, y1), (x2, y1), (x2, y2), (x1, y2)), fill, outline)

    def line(self, points: Sequence[Point], colour: str | RGB = "ink", width: float = 0.0) -> None:
        """Draw connected lines with round ends.

        The width is a fraction of the height of the box; 0 is the width of outlines.
        """
        path = [self.point(x, y) for x, y in points]
        thick = max(1, round(max(width * self.box.height, OUTLINE) * self.pixels))
        self.draw.line(path, self.rgb(colour), thick)
        if thick > 4:
            for x, y in path:
                r = thick / 2
                self.draw.ellipse((x - r, y - r, x + r, y + r), self.rgb(colour))

    def limb(self, points: Sequence[Point], colour: str | RGB, width: float) -> None:
        """Draw a line with an outline."""
        edge = 2 * OUTLINE / self.box.height
        self.line(points, "ink", width + edge)
        self.line(points, colour, width)

    def arch(self, centre: Point, radii: Point, fill: str | RGB = "main") -> None:
        """Draw the upper half of an ellipse."""
        (cx, cy), (rx, ry) = centre, radii
        angles = [2 * math.pi * (0.5 + 0.5 * k / 20) for k in range(21)]
        self.poly([(cx + rx * math.cos(a), cy + ry * math.sin(a)) for a in angles], fill)
