"""Men, women, boys and girls in their poses and clothes."""

from dataclasses import dataclass

from manymatch.scenes.drawing.pen import RGB, Pen, Point, placed

SKINS: tuple[RGB, ...] = ((250, 214, 180), (232, 180, 134), (176, 120, 80), (116, 76, 52))
HAIR: tuple[RGB, ...] = ((46, 34, 30), (110, 70, 36), (222, 176, 84), (150, 62, 30))

_SHOULDER = 0.32


@dataclass(frozen=True)
class Pose:
    """Elbow and hand of the rear and front arm, knee and foot of the rear and front leg."""

    arms: tuple[tuple[Point, Point], tuple[Point, Point]]
    legs: tuple[tuple[Point, Point], tuple[Point, Point]]


_DOWN = (((0.14, 0.44), (0.12, 0.58)), ((0.86, 0.44), (0.88, 0.58)))
_STRAIGHT = (((0.40, 0.78), (0.38, 0.96)), ((0.60, 0.78), (0.62, 0.96)))
_WALK = (((0.36, 0.78), (0.22, 0.96)), ((0.64, 0.78), (0.74, 0.96)))
_SEATED = (((0.84, 0.66), (0.82, 0.96)), ((0.92, 0.68), (0.92, 0.97)))

POSES = {
    "standing": Pose(_DOWN, _STRAIGHT),
    "waving": Pose((_DOWN[0], ((0.92, 0.28), (0.90, 0.08))), _STRAIGHT),
    "running": Pose(
        (((0.16, 0.42), (0.06, 0.34)), ((0.80, 0.46), (0.98, 0.40))),
        (((0.36, 0.78), (0.04, 0.86)), ((0.84, 0.70), (0.88, 0.94))),
    ),
    "holding": Pose((_DOWN[0], ((0.78, 0.46), (0.96, 0.50))), _STRAIGHT),
    "sitting": Pose((((0.2, 0.5), (0.4, 0.62)), ((0.75, 0.5), (0.8, 0.6))), _SEATED),
    "sitting holding": Pose((((0.2, 0.5), (0.4, 0.62)), ((0.75, 0.52), (0.96, 0.62))), _SEATED),
    "riding": Pose((((0.5, 0.45), (0.9, 0.5)), ((0.7, 0.5), (0.98, 0.53))),
                   (((0.66, 0.72), (0.56, 0.96)), ((0.72, 0.74), (0.64, 0.99)))),
    "pulling": Pose((((0.2, 0.42), (-0.05, 0.56)), ((0.3, 0.46), (0.0, 0.60))), _WALK),
    "pushing": Pose((((0.7, 0.40), (1.0, 0.50)), ((0.8, 0.46), (1.02, 0.56))), _WALK),
    "kicking": Pose(
        (((0.1, 0.40), (-0.02, 0.52)), ((0.9, 0.36), (1.0, 0.26))),
        (((0.40, 0.78), (0.36, 0.96)), ((0.80, 0.74), (1.04, 0.90))),
    ),
    "walking": Pose((_DOWN[0], ((0.8, 0.46), (0.96, 0.54))), _WALK),
    "flying": Pose((_DOWN[0], ((0.86, 0.30), (1.0, 0.18))), _STRAIGHT),
}  # fmt: skip


def person(pen: Pen, kind: str, pose: str, garment: RGB, decor: int) -> None:
    """Draw a person. `garment` is the colour of the clothes; `decor` selects skin and hair."""
    skin, hair = SKINS[decor % len(SKINS)], HAIR[decor // 7 % len(HAIR)]
    child, female = kind in ("boy", "girl"), kind in ("woman", "girl")
    head = 0.155 if child else 0.12
    limbs = POSES[pose]
    hip = 0.66 if pose in ("sitting", "sitting holding", "riding") else 0.6
    _hair_behind(pen, kind, hair, head)
    _arm(pen, limbs.arms[0], garment, skin, rear=True)
    for leg, side in zip(limbs.legs, (0.42, 0.58), strict=True):
        _leg(pen, leg, (side, hip - 0.02), kind, skin)
    _torso(pen, garment, hip, female, seated=hip > 0.6)
    _arm(pen, limbs.arms[1], garment, skin, rear=False)
    pen.disc(0.5, head + 0.005, head, skin)
    _face(pen, kind, hair, head)


def _leg(pen: Pen, leg: tuple[Point, Point], hip: Point, kind: str, skin: RGB) -> None:
    knee, foot = leg
    long = kind == "man"
    pen.limb([hip, knee, foot], "jeans" if long else skin, 0.062 if kind != "girl" else 0.055)
    if kind == "boy":
        pen.limb(
            [hip, ((hip[0] + knee[0]) / 2, (hip[1] + knee[1]) / 2 + 0.02), knee], "jeans", 0.075
        )
    pen.limb([(foot[0], foot[1] + 0.01), (foot[0] + 0.12, foot[1] + 0.015)], "dark", 0.035)


def _arm(pen: Pen, arm: tuple[Point, Point], garment: RGB, skin: RGB, rear: bool) -> None:
    elbow, hand = arm
    shoulder = (0.34 if rear else 0.66, _SHOULDER)
    pen.limb([elbow, hand], skin, 0.045)
    pen.limb([shoulder, elbow], garment, 0.055)


def _torso(pen: Pen, garment: RGB, hip: float, female: bool, seated: bool) -> None:
    if female:
        hem, flare = (hip + 0.1, 0.30) if seated else (0.74, 0.36)
        top = [(0.33, 0.26), (0.67, 0.26), (0.64, 0.46)]
        pen.poly([*top, (0.5 + flare, hem), (0.5 - flare, hem), (0.36, 0.46)], garment)
    else:
        pen.poly([(0.27, 0.26), (0.73, 0.26), (0.72, hip + 0.02), (0.28, hip + 0.02)], garment)


def _hair_behind(pen: Pen, kind: str, hair: RGB, head: float) -> None:
    if kind == "woman":
        w = 1.25 * head * pen.stretch
        pen.poly([(0.5, 0.0), (0.5 - w, 0.1), (0.16, 0.36), (0.84, 0.36), (0.5 + w, 0.1)], hair)
    elif kind == "girl":
        for side in (-1, 1):
            pen.oval(
                (0.5 + side * 1.35 * head * pen.stretch, head * 1.3),
                (0.4 * head * pen.stretch, 0.6 * head),
                hair,
            )


def _face(pen: Pen, kind: str, hair: RGB, head: float) -> None:
    w = head * pen.stretch
    pen.arch((0.5, head * 0.95), (1.05 * w, 1.0 * head), hair)
    if kind in ("woman", "girl"):
        fringe = [(-1.05, 0.9), (-0.2, 0.4), (-0.95, 1.5)]
        pen.poly(placed(fringe, 0.5, 0.0, w, head), hair, False)
    for dx in (0.1, 0.6):
        pen.disc(0.5 + dx * w, head * 1.1, head * 0.11, "ink", False)
    if kind == "man":
        pen.oval((0.5 + 0.38 * w, head * 1.5), (0.42 * w, head * 0.14), hair, False)
    mouth = placed([(0.12, 1.6), (0.4, 1.72), (0.65, 1.58)], 0.5, 0.0, w, head)
    pen.line(mouth, (150, 40, 50), head * 0.1)
