"""Draw a scene as an image file, supersampled and from back to front."""

from functools import cache
from pathlib import Path
from random import Random

from PIL import Image, ImageDraw

from manymatch.scenes.drawing import animals, figures, people
from manymatch.scenes.drawing.pen import RGB, Pen, placed
from manymatch.scenes.kinds import CLOTHES, COLOURS, PEOPLE, VERBS
from manymatch.scenes.world import Box, Scene

_SUPERSAMPLING = 3
_QUALITY = 92
_DRAWINGS = animals.DRAWINGS | figures.DRAWINGS
_ACTIONS = ("hold", "ride", "pull", "push", "kick", "fly", "walk")
_POSES = {name: VERBS[name][0].ing for name in _ACTIONS}


def save(scene: Scene, size: int, path: Path) -> None:
    """Write the image of `scene`, `size` x `size` pixels, as a JPEG file."""
    paint(scene, size).save(path, "JPEG", quality=_QUALITY, subsampling=0)


def paint(scene: Scene, size: int) -> Image.Image:
    """Return the image of `scene`, anti-aliased, RGB, `size` x `size` pixels."""
    pixels = size * _SUPERSAMPLING
    image = Image.new("RGB", (pixels, pixels))
    draw = ImageDraw.Draw(image)
    background(Pen(draw, Box(0, 0, 1, 1), pixels), scene.background, Random(scene.decor))
    for index in _back_to_front(scene):
        _paint_thing(draw, pixels, scene, index)
    return image.reduce(_SUPERSAMPLING)


def _back_to_front(scene: Scene) -> list[int]:
    """Return the objects in drawing order.

    The back row comes before the front row. Riders, loads and held things are drawn after what
    carries them, contents before it.
    """

    @cache
    def depth(index: int) -> float:
        for tie in scene.ties:
            if tie.subject == index and tie.relation in ("ride", "on"):
                return depth(tie.object) + 0.1
            if tie.subject == index and tie.relation in ("in", "below"):
                return depth(tie.object) - 0.1
            if tie.object == index and tie.relation in ("hold", "wear"):
                return depth(tie.subject) + 0.01
        return {"front": 2.0, "back": 1.0, None: 0.0}[scene.things[index].row]

    return sorted(range(len(scene.things)), key=depth)


def _paint_thing(draw: ImageDraw.ImageDraw, pixels: int, scene: Scene, index: int) -> None:
    thing = scene.things[index]
    spec = thing.spec
    pen = Pen(draw, thing.box, pixels, COLOURS[spec.colour or "gray"], spec.facing < 0)
    if spec.kind in PEOPLE:
        people.person(
            pen, spec.kind, _pose(scene, index), _garment(scene, index), scene.decor + index
        )
    elif spec.kind not in CLOTHES.values():
        _DRAWINGS[spec.kind](pen, spec.kind, spec.state)
    for tie in scene.ties:
        if index == max(tie.subject, tie.object) and tie.relation in ("pull", "walk", "fly"):
            _string(draw, pixels, scene, tie.subject, tie.object, tie.relation)


def _pose(scene: Scene, index: int) -> str:
    actions = {tie.relation for tie in scene.ties if tie.subject == index} & set(_POSES)
    state = scene.things[index].spec.state
    if "hold" in actions:
        return "sitting holding" if state == "sitting" else "holding"
    return _POSES[actions.pop()] if actions else state or "standing"


def _garment(scene: Scene, index: int) -> tuple[int, int, int]:
    """Return the colour of the person's shirt or dress."""
    for tie in scene.ties:
        worn = scene.things[tie.object].spec
        if tie.subject == index and tie.relation == "wear" and worn.kind in CLOTHES.values():
            return COLOURS[worn.colour or "gray"]
    raise ValueError("a person without clothes")


def _string(
    draw: ImageDraw.ImageDraw, pixels: int, scene: Scene, a: int, b: int, relation: str
) -> None:
    """Draw the rope, leash or kite string between two objects."""
    holder, held = scene.things[a], scene.things[b]
    side = holder.spec.facing * (-1 if relation == "pull" else 1)
    height = {"pull": 0.58, "walk": 0.54, "fly": 0.18}[relation]
    start = (
        holder.box.cx + side * 0.48 * holder.box.width,
        holder.box.y1 + height * holder.box.height,
    )
    end = {
        "pull": (held.box.cx - side * 0.48 * held.box.width, held.box.y1 + 0.5 * held.box.height),
        "walk": (held.box.cx + side * 0.2 * held.box.width, held.box.y1 + 0.42 * held.box.height),
        "fly": (held.box.cx, held.box.y1 + 0.3 * held.box.height),
    }[relation]
    Pen(draw, Box(0, 0, 1, 1), pixels).line([start, end], (110, 60, 30), 0.008)


HORIZON = 0.58
_GROUNDS: dict[str, tuple[RGB, RGB]] = {
    "park": ((196, 228, 250), (146, 204, 118)),
    "street": ((206, 220, 236), (134, 134, 142)),
    "beach": ((190, 230, 252), (242, 222, 164)),
    "snow": ((206, 216, 230), (244, 248, 252)),
    "desert": ((252, 226, 170), (226, 178, 108)),
    "field": ((186, 222, 248), (222, 200, 96)),
    "room": ((240, 224, 200), (190, 146, 104)),
    "sea": ((196, 230, 252), (70, 142, 206)),
}
"""Colours above and below the horizon."""


def background(pen: Pen, name: str, rng: Random) -> None:
    """Draw the background called `name` on the whole image."""
    above, below = _GROUNDS[name]
    horizon = 0.64 if name == "sea" else HORIZON
    pen.rect(0, 0, 1, horizon, above, False)
    pen.rect(0, horizon, 1, 1, below, False)
    _DETAILS[name](pen, rng)


def _cloud(pen: Pen, rng: Random) -> None:
    x, y = rng.uniform(0.05, 0.9), rng.uniform(0.05, 0.14)
    for dx, r in ((-0.05, 0.025), (0.0, 0.04), (0.05, 0.028)):
        pen.disc(x + dx, y, r, "white", False)


def _tufts(pen: Pen, rng: Random, colour: RGB, count: int = 14) -> None:
    for _ in range(count):
        x, y = rng.random(), rng.uniform(HORIZON + 0.04, 0.98)
        for dx in (-0.01, 0.0, 0.01):
            pen.line([(x, y), (x + dx, y - 0.025)], colour)


def _park(pen: Pen, rng: Random) -> None:
    _cloud(pen, rng)
    for k in range(7):
        pen.disc(k / 6, HORIZON, 0.07 + 0.03 * rng.random(), (112, 176, 96), False)
    pen.rect(0, HORIZON, 1, HORIZON + 0.1, (146, 204, 118), False)
    pen.poly([(0.42, HORIZON), (0.5, HORIZON), (0.8, 1), (0.45, 1)], (214, 196, 150), False)
    _tufts(pen, rng, (96, 160, 76))


def _street(pen: Pen, rng: Random) -> None:
    x = 0.0
    while x < 1:
        width, height = rng.uniform(0.1, 0.18), rng.uniform(0.2, 0.42)
        pen.rect(x, HORIZON - height, x + width, HORIZON, (176, 184, 196), False)
        for k in range(int(height / 0.07)):
            for dx in (0.03, 0.07):
                y = HORIZON - height + 0.03 + 0.065 * k
                pen.rect(x + dx, y, x + dx + 0.02, y + 0.03, (214, 224, 234), False)
        x += width + 0.01
    pen.rect(0, HORIZON, 1, HORIZON + 0.08, (196, 194, 190), False)
    for k in range(5):
        pen.rect(0.04 + 0.22 * k, 0.79, 0.14 + 0.22 * k, 0.81, (240, 240, 230), False)


def _beach(pen: Pen, rng: Random) -> None:
    pen.disc(0.88, 0.1, 0.06, (255, 220, 80), False)
    pen.rect(0, HORIZON - 0.12, 1, HORIZON, (92, 170, 222), False)
    for k in range(5):
        y, x = HORIZON - 0.10 + 0.025 * k, rng.random() * 0.8
        pen.line([(x, y), (x + 0.12, y)], (220, 240, 250))
    _dots(pen, rng, (214, 190, 130))


def _dots(pen: Pen, rng: Random, colour: RGB) -> None:
    for _ in range(30):
        pen.disc(rng.random(), rng.uniform(HORIZON + 0.03, 1), 0.004, colour, False)


def _snow(pen: Pen, rng: Random) -> None:
    for x, r in ((0.15, 0.16), (0.5, 0.2), (0.85, 0.15)):
        pen.poly([(x - r, HORIZON), (x, HORIZON - r), (x + r, HORIZON)], (186, 198, 216), False)
        foot = HORIZON - r * 2 / 3
        pen.poly([(x - r / 3, foot), (x, HORIZON - r), (x + r / 3, foot)], "white", False)
    for _ in range(45):
        pen.disc(rng.random(), rng.random(), 0.006, "white", False)


def _desert(pen: Pen, rng: Random) -> None:
    pen.disc(0.14, 0.12, 0.06, (255, 200, 70), False)
    for x, r in ((0.2, 0.25), (0.75, 0.3)):
        pen.oval((x, HORIZON + 0.02), (r, 0.09), (214, 164, 96), False)
    pen.rect(0, HORIZON + 0.02, 1, 1, (226, 178, 108), False)
    x = rng.uniform(0.2, 0.8)
    cactus = (96, 150, 84)
    pen.line([(x, HORIZON + 0.05), (x, HORIZON - 0.1)], cactus, 0.02)
    arms = [(-0.04, -0.06), (-0.04, -0.02), (0.04, -0.02), (0.04, -0.07)]
    pen.line(placed(arms, x, HORIZON), cactus, 0.014)
    _dots(pen, rng, (196, 148, 84))


def _field(pen: Pen, rng: Random) -> None:
    _cloud(pen, rng)
    pen.oval((0.3, HORIZON), (0.5, 0.07), (160, 190, 90), False)
    pen.rect(0, HORIZON, 1, 1, (222, 200, 96), False)
    for k in range(9):
        y = HORIZON + 0.03 + 0.045 * k
        pen.line([(0, y), (1, y + 0.01)], (200, 174, 70))
    _tufts(pen, rng, (176, 150, 50), 24)


def _room(pen: Pen, rng: Random) -> None:
    for k in range(12):
        pen.line([(k / 12, 0), (k / 12, HORIZON)], (230, 210, 182), 0.01)
    for k in range(1, 5):
        pen.line([(0, HORIZON + 0.09 * k), (1, HORIZON + 0.09 * k)], (166, 122, 82))
    pen.rect(0, HORIZON - 0.02, 1, HORIZON, "white", False)
    x = rng.uniform(0.1, 0.65)
    pen.rect(x, 0.08, x + 0.24, 0.34, (176, 216, 242))
    pen.line([(x + 0.12, 0.08), (x + 0.12, 0.34)], "white", 0.012)
    pen.line([(x, 0.21), (x + 0.24, 0.21)], "white", 0.012)


def _sea(pen: Pen, rng: Random) -> None:
    _cloud(pen, rng)
    for _ in range(16):
        x, y = rng.random(), rng.uniform(0.68, 0.98)
        pen.line([(x, y), (x + 0.03, y - 0.012), (x + 0.06, y)], (150, 200, 236))


_ALL = (_park, _street, _beach, _snow, _desert, _field, _room, _sea)
_DETAILS = {details.__name__.removeprefix("_"): details for details in _ALL}
