"""Dogs, cats, horses, cows and fish."""

from dataclasses import dataclass, replace

from manymatch.scenes.drawing.pen import Pen, Point, placed

_LEGS = {
    "standing": ((0.22, 0.20), (0.34, 0.34), (0.62, 0.62), (0.74, 0.76)),
    "running": ((0.24, 0.02), (0.32, 0.18), (0.68, 0.88), (0.74, 0.99)),
}
"""x of hip and foot of each leg: hind pair, front pair."""


@dataclass(frozen=True)
class Beast:
    """Proportions of a four-legged animal in its box, looking right."""

    body: tuple[Point, Point]
    """Centre and radii of the trunk."""
    head: tuple[Point, float]
    leg: float
    """Thickness."""
    neck: float = 0.0


_BEASTS = {
    "dog": Beast(((0.46, 0.55), (0.30, 0.19)), ((0.80, 0.30), 0.2), 0.10, 0.2),
    "cat": Beast(((0.46, 0.58), (0.30, 0.19)), ((0.80, 0.34), 0.23), 0.09),
    "horse": Beast(((0.45, 0.50), (0.29, 0.15)), ((0.86, 0.19), 0.09), 0.075, 0.2),
    "cow": Beast(((0.44, 0.48), (0.34, 0.24)), ((0.86, 0.34), 0.15), 0.10),
}


def beast(pen: Pen, kind: str, state: str | None) -> None:
    """A four-legged animal: standing or walking, running, sleeping, sitting."""
    if state == "sleeping":
        _asleep(pen, kind)
    elif state == "sitting":
        _seated(pen, kind)
    else:
        _upright(pen, kind, state or "standing")


def _upright(pen: Pen, kind: str, state: str) -> None:
    shape = _BEASTS[kind]
    (bx, by), radii = shape.body
    _tail(pen, kind, (bx - radii[0] * 0.95, by - 0.05), up=state == "running" or kind != "cow")
    for k, (hip, foot) in enumerate(_LEGS[state]):
        middle = ((hip + foot) / 2 + (0.03 if state == "running" else 0), (by + 1) / 2 + 0.05)
        end = 0.95 if state == "standing" else 0.90
        shade = "shade" if k in (1, 2) else "main"
        pen.limb([(hip, by + 0.08), middle, (foot, end)], shade, shape.leg)
        if kind in ("horse", "cow"):
            pen.line([(foot, end), (foot + 0.01, end)], "ink", shape.leg)
    (hx, hy), size = shape.head
    if shape.neck:
        base = bx + radii[0] * 0.75
        pen.limb([(base, by - 0.02), (hx - 0.03, hy + 0.05)], "main", shape.neck)
    pen.oval((bx, by), radii, "main")
    if shape.neck:
        pen.line([(bx + radii[0] * 0.7, by), (hx - 0.03, hy + 0.05)], "main", shape.neck)
    _markings(pen, kind, (bx, by))
    _head(pen, kind, (hx, hy), size)


def _seated(pen: Pen, kind: str) -> None:
    low = (0.12, 0.72)
    _tail(pen, kind, low, up=True)
    pen.oval((0.40, 0.72), (0.30, 0.24), "main")
    pen.oval((0.50, 0.58), (0.19, 0.32), "main", turn=0.15)
    for x in (0.52, 0.66):
        pen.limb([(x, 0.62), (x, 0.95)], "main", 0.09)
    pen.oval((0.34, 0.94), (0.16, 0.06), "shade")
    _head(pen, kind, (0.62, 0.26), 0.2)


_NODDING = {"horse": ((0.84, 0.26), 0.15), "cow": ((0.80, 0.68), 0.26)}
"""Position and size of the head of a sleeping animal. A horse's head hangs from its long neck."""


def _asleep(pen: Pen, kind: str) -> None:
    head, size = _NODDING.get(kind, ((0.80, 0.68), 0.3))
    _tail(pen, kind, (0.10, 0.72), up=False)
    body, neck = (0.44, 0.64), [(0.64, 0.62), (head[0] - 0.04, head[1] + 0.04)]
    if kind == "horse":
        pen.limb(neck, "main", 0.28)
    pen.oval(body, (0.37, 0.34))
    if kind == "horse":
        pen.line(neck, "main", 0.28)
    _markings(pen, kind, (0.44, 0.55))
    for x in (0.30, 0.62):
        pen.oval((x, 0.92), (0.13, 0.08), "shade")
    _head(pen, kind, head, size, asleep=True)
    _snore(pen)


def _snore(pen: Pen) -> None:
    """Draw two letters Z over the head, readable also if the animal faces left."""
    upright = replace(pen, mirrored=False)
    for x, y, size in ((0.88, -0.06, 0.09), (1.0, -0.34, 0.12)):
        wide, high = size * pen.stretch, size * 1.2
        left = 1 - x - wide if pen.mirrored else x
        zed = [(left, y), (left + wide, y), (left, y + high), (left + wide, y + high)]
        upright.line(zed, "white", 0.07)
        upright.line(zed, "ink", 0.035)


def _tail(pen: Pen, kind: str, root: Point, up: bool) -> None:
    x, y = root
    if kind == "horse":
        hair = [(0.05, 0.0), (-0.08, 0.08), (-0.10, 0.42), (0.03, 0.2)]
        pen.poly(placed(hair, x, y), "shade")
    elif kind == "cow":
        pen.line([(x, y), (x - 0.05, y + 0.1), (x - 0.04, y + 0.3)], "ink", 0.03)
        pen.disc(x - 0.04, y + 0.33, 0.04, "shade")
    elif kind == "dog":
        rise = -0.28 if up else 0.1
        pen.limb([(x + 0.04, y), (x - 0.05, y + rise * 0.5), (x - 0.07, y + rise)], "main", 0.07)
    else:
        bend = [(x, y), (x - 0.08, y - 0.1), (x - 0.07, y - 0.35), (x - 0.01, y - 0.48)]
        flat = [(x + 0.1, y + 0.2), (x + 0.2, y + 0.28), (x + 0.5, y + 0.26)]
        pen.limb(bend if up else flat, "main", 0.07)


def _markings(pen: Pen, kind: str, centre: Point) -> None:
    x, y = centre
    if kind == "cow":
        patch = "white" if min(pen.main) < 225 else "dark"
        for dx, dy, r in ((-0.17, -0.06, 0.10), (0.10, 0.04, 0.12), (-0.02, -0.12, 0.06)):
            pen.oval((x + dx, y + dy), (r * 0.75, r), patch, outline=False)
        pen.oval((x - 0.12, y + 0.24), (0.06, 0.05), "pinkish")
    elif kind == "cat":
        for dx in (-0.14, -0.04, 0.06):
            pen.line([(x + dx, y - 0.18), (x + dx + 0.01, y - 0.04)], "shade", 0.04)


def _head(pen: Pen, kind: str, at: Point, size: float, asleep: bool = False) -> None:
    {"dog": _dog_head, "cat": _cat_head, "horse": _horse_head, "cow": _cow_head}[kind](
        pen, *at, size, asleep
    )


def eye(pen: Pen, x: float, y: float, r: float, asleep: bool) -> None:
    """An open or closed eye with a pupil of radius `r`."""
    wide = r * pen.stretch
    if asleep:
        pen.line([(x - 1.5 * wide, y), (x, y + r), (x + 1.5 * wide, y)], "ink", r * 0.5)
    else:
        pen.disc(x, y, 1.5 * r, "white", outline=False)
        pen.disc(x + 0.4 * wide, y, r, "ink", outline=False)


def _dog_head(pen: Pen, x: float, y: float, s: float, asleep: bool) -> None:
    w = s * pen.stretch
    pen.disc(x, y, s)
    pen.oval((x + 1.0 * w, y + 0.35 * s), (0.75 * w, 0.48 * s), "light")
    pen.oval((x + 1.6 * w, y + 0.15 * s), (0.25 * w, 0.22 * s), "ink")
    pen.oval((x - 0.65 * w, y + 0.35 * s), (0.38 * w, 0.85 * s), "shade", turn=0.25)
    eye(pen, x + 0.3 * w, y - 0.25 * s, 0.16 * s, asleep)
    if not asleep:
        pen.oval((x + 1.05 * w, y + 0.9 * s), (0.22 * w, 0.35 * s), "pinkish")


def _cat_head(pen: Pen, x: float, y: float, s: float, asleep: bool) -> None:
    w = s * pen.stretch
    for side in (-1, 1):
        ear = [(side * 0.95, -0.3), (side * 0.72, -1.45), (side * 0.1, -0.85)]
        inner = [(side * 0.8, -0.6), (side * 0.72, -1.15), (side * 0.4, -0.85)]
        pen.poly(placed(ear, x, y, w, s))
        pen.poly(placed(inner, x, y, w, s), "pinkish", False)
    pen.oval((x, y), (1.08 * w, 0.95 * s))
    for dx in (-0.4, 0.42):
        eye(pen, x + dx * w, y - 0.15 * s, 0.17 * s, asleep)
    pen.poly(placed([(-0.14, 0.2), (0.14, 0.2), (0.0, 0.4)], x, y, w, s), "pinkish")
    for side in (-1, 1):
        for dy in (0.25, 0.5):
            pen.line([(x + side * 0.3 * w, y + 0.4 * s), (x + side * 1.5 * w, y + dy * s)], "ink")


def _horse_head(pen: Pen, x: float, y: float, s: float, asleep: bool) -> None:
    w = s * pen.stretch
    pen.poly([(x - 0.5 * w, y - 0.9 * s), (x - 0.2 * w, y - 2.0 * s), (x + 0.2 * w, y - 0.9 * s)])
    pen.oval((x + 0.35 * w, y + 0.35 * s), (1.75 * w, 0.9 * s), "main", turn=0.6)
    pen.oval((x + 1.3 * w, y + 1.25 * s), (0.65 * w, 0.6 * s), "light")
    hang = 0.8 if asleep else 1.0
    mane = [
        (x + 0.1 * w, y - 1.2 * s),
        (x - 0.9 * w, y - 0.6 * s),
        (x - 2.1 * w * hang, y + 2.0 * s * hang),
        (x - 1.2 * w * hang, y + 1.5 * s * hang),
    ]
    pen.poly(mane, "shade")
    eye(pen, x + 0.1 * w, y - 0.15 * s, 0.2 * s, asleep)


def _cow_head(pen: Pen, x: float, y: float, s: float, asleep: bool) -> None:
    w = s * pen.stretch
    for side in (-1, 1):
        horn = [(side * 0.35, -0.7), (side * 1.0, -1.6), (side * 0.75, -0.6)]
        pen.poly(placed(horn, x, y, w, s), "white")
        pen.oval((x + side * 1.1 * w, y - 0.35 * s), (0.5 * w, 0.25 * s), "shade")
    pen.oval((x, y), (0.85 * w, 1.05 * s))
    pen.oval((x + 0.1 * w, y + 0.75 * s), (0.85 * w, 0.5 * s), "pinkish")
    for dx in (-0.2, 0.4):
        pen.disc(x + dx * w, y + 0.75 * s, 0.1 * s, "ink", False)
    for dx in (-0.3, 0.4):
        eye(pen, x + dx * w, y - 0.2 * s, 0.17 * s, asleep)


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


DRAWINGS = dict.fromkeys(_BEASTS, beast) | {"fish": fish}
