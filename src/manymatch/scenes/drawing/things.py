"""Plants, buildings, furniture, toys and small things."""

from manymatch.scenes.drawing.pen import Pen, placed


def tree(pen: Pen, kind: str, state: str | None) -> None:
    pen.poly([(0.43, 1.0), (0.46, 0.5), (0.54, 0.5), (0.57, 1.0)], "wood")
    if state == "bare":
        # A tree without leaves has its colour in the branches.
        for path, width in (
            ([(0.5, 0.98), (0.5, 0.05)], 0.045),
            ([(0.5, 0.62), (0.18, 0.34), (0.12, 0.16)], 0.032),
            ([(0.5, 0.55), (0.84, 0.30), (0.90, 0.12)], 0.032),
            ([(0.5, 0.36), (0.30, 0.10)], 0.026),
            ([(0.5, 0.32), (0.70, 0.08)], 0.026),
            ([(0.28, 0.43), (0.06, 0.38)], 0.02),
            ([(0.74, 0.37), (0.96, 0.36)], 0.02),
        ):
            pen.limb(path, "main", width)
        return
    for x, y, r in ((0.26, 0.42, 0.17), (0.74, 0.42, 0.17), (0.5, 0.22, 0.20), (0.5, 0.44, 0.18)):
        pen.disc(x, y, r)
    for x, y, r in ((0.28, 0.40, 0.13), (0.72, 0.42, 0.13), (0.5, 0.30, 0.18), (0.5, 0.44, 0.15)):
        pen.disc(x, y, r, "main", False)
    for x, y in ((0.38, 0.18), (0.60, 0.26), (0.24, 0.40), (0.48, 0.44), (0.76, 0.42)):
        pen.disc(x, y, 0.035, "light", False)


def flower(pen: Pen, kind: str, state: str | None) -> None:
    wilted = state == "wilted"
    stem = (
        [(0.5, 1.0), (0.5, 0.5), (0.62, 0.34), (0.8, 0.42)] if wilted else [(0.5, 1.0), (0.5, 0.3)]
    )
    pen.limb(stem, (150, 140, 60) if wilted else "leaf", 0.05)
    pen.oval((0.3, 0.78), (0.2, 0.07), "leaf", turn=0.5)
    pen.oval((0.7, 0.74), (0.2, 0.07), "leaf", turn=-0.5)
    if wilted:
        for dx in (-0.16, 0.0, 0.14):
            pen.oval((0.8 + dx, 0.58), (0.1, 0.13), "main")
        pen.disc(0.8, 0.45, 0.08, "wood")
        return
    for dx, dy in ((0.0, -0.17), (0.27, -0.06), (0.17, 0.14), (-0.17, 0.14), (-0.27, -0.06)):
        pen.disc(0.5 + dx, 0.27 + dy, 0.125)
    pen.disc(0.5, 0.27, 0.1, "lit")


def house(pen: Pen, kind: str, state: str | None) -> None:
    pen.rect(0.74, 0.05, 0.84, 0.34, "wood")
    pen.rect(0.08, 0.42, 0.92, 1.0)
    pen.poly([(0.0, 0.44), (0.5, 0.0), (1.0, 0.44)], "shade")
    pane = "lit" if state == "lit" else "dark"
    for x in (0.16, 0.64):
        pen.rect(x, 0.53, x + 0.2, 0.74, pane)
        pen.line([(x + 0.1, 0.53), (x + 0.1, 0.74)], "ink")
        pen.line([(x, 0.635), (x + 0.2, 0.635)], "ink")
    pen.rect(0.42, 0.62, 0.58, 1.0, "wood")
    pen.disc(0.55, 0.82, 0.018, "lit")


def chair(pen: Pen, kind: str, state: str | None) -> None:
    for x in (0.1, 0.82):
        pen.rect(x, 0.55, x + 0.09, 1.0, "shade")
    pen.rect(0.06, 0.0, 0.2, 0.58)
    pen.poly([(0.06, 0.5), (0.96, 0.5), (0.96, 0.61), (0.06, 0.61)])


def bench(pen: Pen, kind: str, state: str | None) -> None:
    for x in (0.08, 0.86):
        pen.rect(x, 0.1, x + 0.06, 1.0, "dark")
    for y in (0.02, 0.24):
        pen.rect(0.0, y, 1.0, y + 0.15)
    pen.rect(0.0, 0.5, 1.0, 0.66)


def table(pen: Pen, kind: str, state: str | None) -> None:
    for x in (0.06, 0.86):
        pen.rect(x, 0.1, x + 0.08, 1.0, "shade")
    pen.rect(0.0, 0.0, 1.0, 0.14)


def lamp(pen: Pen, kind: str, state: str | None) -> None:
    if state == "lit":
        pen.poly([(0.2, 0.42), (0.8, 0.42), (1.15, 0.95), (-0.15, 0.95)], (255, 246, 170), False)
    pen.rect(0.46, 0.4, 0.54, 0.92, "metal")
    pen.oval((0.5, 0.94), (0.3, 0.06), "main")
    if state == "lit":
        starts, ends = (
            ((0.02, 0.1), (0.98, 0.1), (0.5, -0.02)),
            ((-0.2, 0.0), (1.2, 0.0), (0.5, -0.14)),
        )
        for ray in zip(starts, ends, strict=True):
            pen.line(ray, (240, 190, 40), 0.03)
    pen.poly([(0.28, 0.0), (0.72, 0.0), (1.0, 0.42), (0.0, 0.42)])
    pen.oval((0.5, 0.44), (0.16, 0.06), "lit" if state == "lit" else "dark")


def ball(pen: Pen, kind: str, state: str | None) -> None:
    pen.disc(0.5, 0.5, 0.49)
    pen.oval((0.5, 0.5), (0.2, 0.48), "light")
    pen.line([(0.02, 0.5), (0.98, 0.5)], "ink")


def kite(pen: Pen, kind: str, state: str | None) -> None:
    pen.line([(0.5, 0.6), (0.38, 0.72), (0.58, 0.84), (0.42, 0.98)], "ink")
    for x, y in ((0.42, 0.73), (0.54, 0.84), (0.44, 0.95)):
        bow = [(-0.13, -0.04), (0.13, 0.04), (0.13, -0.04), (-0.13, 0.04)]
        pen.poly(placed(bow, x, y), "light")
    pen.poly([(0.5, 0.0), (1.0, 0.28), (0.5, 0.64), (0.0, 0.28)])
    pen.poly([(0.5, 0.0), (1.0, 0.28), (0.5, 0.28)], "light")
    pen.poly([(0.5, 0.64), (0.0, 0.28), (0.5, 0.28)], "light")


def balloon(pen: Pen, kind: str, state: str | None) -> None:
    pen.line([(0.5, 0.55), (0.44, 0.75), (0.5, 1.0)], "ink")
    pen.poly([(0.42, 0.62), (0.58, 0.62), (0.5, 0.52)], "shade")
    pen.oval((0.5, 0.28), (0.5, 0.28))
    pen.oval((0.34, 0.18), (0.09, 0.07), "white", False)


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


def cup(pen: Pen, kind: str, state: str | None) -> None:
    pen.disc(0.82, 0.6, 0.2, "main")
    pen.disc(0.82, 0.6, 0.09, "white")
    pen.poly([(0.08, 0.25), (0.76, 0.25), (0.68, 1.0), (0.16, 1.0)])
    pen.oval((0.42, 0.26), (0.34, 0.13), (92, 54, 28) if state == "full" else "white")
    if state == "full":
        for x in (0.3, 0.52):
            pen.line([(x, 0.1), (x + 0.07, -0.04), (x, -0.18), (x + 0.07, -0.32)], "metal", 0.06)


def bottle(pen: Pen, kind: str, state: str | None) -> None:
    neck = [(0.36, 0.1), (0.64, 0.1), (0.64, 0.32), (0.96, 0.46)]
    pen.poly([*neck, (0.96, 1.0), (0.04, 1.0), (0.04, 0.46), (0.36, 0.32)], "white")
    if state == "full":
        pen.poly([(0.64, 0.36), (0.96, 0.48), (0.96, 1.0), (0.04, 1.0), (0.04, 0.48), (0.36, 0.36)])
    else:
        # An empty bottle has its colour in the band and the cap.
        pen.rect(0.04, 0.62, 0.96, 0.82)
    pen.rect(0.3, 0.0, 0.7, 0.12)


def book(pen: Pen, kind: str, state: str | None) -> None:
    if state == "open":
        pen.poly([(0.0, 0.12), (0.5, 0.24), (1.0, 0.12), (1.0, 0.92), (0.5, 1.0), (0.0, 0.92)])
        for side in (-1, 1):
            pen.poly(
                [(0.5, 0.2), (0.5 + side * 0.45, 0.04), (0.5 + side * 0.45, 0.8), (0.5, 0.92)],
                "white",
            )
            for y in (0.32, 0.5, 0.66):
                pen.line([(0.5 + side * 0.1, y + 0.06), (0.5 + side * 0.38, y - 0.04)], "ink")
        return
    pen.rect(0.06, 0.0, 0.94, 1.0)
    pen.rect(0.06, 0.0, 0.22, 1.0, "shade")
    pen.rect(0.34, 0.16, 0.82, 0.36, "white")
    pen.line([(0.24, 0.94), (0.92, 0.94)], "white", 0.05)


def box(pen: Pen, kind: str, state: str | None) -> None:
    """A box with folds in the object's colour. Its contents are drawn before the box."""
    if state == "open":
        pen.poly([(0.08, 0.3), (0.0, 0.02), (0.14, 0.06), (0.2, 0.3)], "light")
        pen.poly([(0.92, 0.3), (1.0, 0.02), (0.86, 0.06), (0.8, 0.3)], "light")
        pen.rect(0.08, 0.3, 0.92, 1.0)
        pen.line([(0.5, 0.55), (0.5, 0.98)], "shade", 0.05)
        return
    pen.rect(0.08, 0.1, 0.92, 1.0)
    pen.rect(0.04, 0.1, 0.96, 0.3, "light")
    pen.rect(0.42, 0.1, 0.58, 1.0, "shade")


def basket(pen: Pen, kind: str, state: str | None) -> None:
    handle = [(0.06, 0.5), (0.14, 0.18), (0.36, 0.03), (0.64, 0.03), (0.86, 0.18), (0.94, 0.5)]
    pen.limb(handle, "main", 0.06)
    if state == "full":
        for x, y in ((0.26, 0.44), (0.5, 0.38), (0.74, 0.44)):
            pen.disc(x, y, 0.16, "apple")
    pen.poly([(0.0, 0.48), (1.0, 0.48), (0.86, 1.0), (0.14, 1.0)])
    for y in (0.64, 0.8):
        pen.line([(0.05, y), (0.95, y)], "shade")
    for x in (0.28, 0.5, 0.72):
        pen.line([(x, 0.5), (0.5 + (x - 0.5) * 0.8, 0.98)], "shade")


def hat(pen: Pen, kind: str, state: str | None) -> None:
    pen.poly([(0.22, 0.82), (0.28, 0.08), (0.5, 0.0), (0.72, 0.08), (0.78, 0.82)])
    pen.rect(0.22, 0.55, 0.78, 0.8, "shade")
    pen.oval((0.5, 0.84), (0.5, 0.16))


DRAWINGS = {
    drawing.__name__: drawing
    for drawing in (
        tree, flower, house, chair, bench, table, lamp, ball, kite, balloon,
        umbrella, cup, bottle, book, box, basket, hat,
    )
}  # fmt: skip
