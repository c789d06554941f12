"""Draw a scene as an image file, supersampled and from back to front."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from PIL import Image, ImageDraw

from manymatch.scenes.drawing import birds_and_fish, four_legged, people, things, vehicles
from manymatch.scenes.drawing.backgrounds import background
from manymatch.scenes.drawing.pen import Pen
from manymatch.scenes.kinds import CLOTHES, COLOURS, PEOPLE
from manymatch.scenes.words import VERBS
from manymatch.scenes.world import Box, Scene

_SUPERSAMPLING = 3
_QUALITY = 92
_DRAWINGS = {
    **four_legged.DRAWINGS,
    **birds_and_fish.DRAWINGS,
    **vehicles.DRAWINGS,
    **things.DRAWINGS,
}
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
    depth: dict[int, float] = {}

    def of(index: int) -> float:
        if index not in depth:
            depth[index] = _depth(scene, index, of)
        return depth[index]

    return sorted(range(len(scene.things)), key=of)


def _depth(scene: Scene, index: int, of: Callable[[int], float]) -> float:
    for tie in scene.ties:
        if tie.subject == index and tie.relation in ("ride", "on"):
            return of(tie.object) + 0.1
        if tie.subject == index and tie.relation in ("in", "below"):
            return of(tie.object) - 0.1
        if tie.object == index and tie.relation in ("hold", "wear"):
            return of(tie.subject) + 0.01
    return {"front": 2.0, "back": 1.0, None: 0.0}[scene.things[index].row]


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
