"""The data of a scene: a blueprint, and the placed objects with their relations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from manymatch.scenes.kinds import BEASTS, PEOPLE


class Box(NamedTuple):
    """A box in fractions of the image. y points down."""

    x1: float
    y1: float
    x2: float
    y2: float

    @property
    def width(self) -> float:
        return self.x2 - self.x1

    @property
    def height(self) -> float:
        return self.y2 - self.y1

    @property
    def cx(self) -> float:
        return (self.x1 + self.x2) / 2

    def moved(self, dx: float, dy: float) -> "Box":
        return Box(self.x1 + dx, self.y1 + dy, self.x2 + dx, self.y2 + dy)

    def overlap_x(self, other: "Box") -> float:
        """Return the horizontal overlap as a share of the narrower box; negative if apart."""
        common = min(self.x2, other.x2) - max(self.x1, other.x1)
        return common / min(self.width, other.width)

    def meets(self, other: "Box") -> bool:
        apart_x = self.x1 >= other.x2 or other.x1 >= self.x2
        apart_y = self.y1 >= other.y2 or other.y1 >= self.y2
        return not (apart_x or apart_y)


def enclosing_box(boxes: list[Box]) -> Box:
    """Return the smallest box that contains all `boxes`."""
    x1, y1, x2, y2 = zip(*boxes, strict=True)
    return Box(min(x1), min(y1), max(x2), max(y2))


@dataclass(frozen=True)
class Spec:
    """The properties of an object. Attributes that its kind cannot have are None."""

    kind: str
    colour: str | None = None
    size: str | None = None
    state: str | None = None
    facing: int = 1
    """+1: to the right, -1: to the left."""


class Tie(NamedTuple):
    """A relation between two objects, given by their indexes."""

    subject: int
    relation: str
    object: int


class Spot(NamedTuple):
    """The position of a cluster of tied objects. `root` is the index of its first object."""

    root: int
    row: str
    """`front` (spread over the width in order), `back` or `sky`."""
    x: float
    """In `front`, the share of the free width before the cluster; else its centre."""
    y: float = 0.0
    """In `sky`, the centre."""


@dataclass(frozen=True)
class Blueprint:
    """Everything that determines a scene. The layout makes no random choice."""

    background: str
    specs: tuple[Spec, ...]
    ties: tuple[Tie, ...]
    spots: tuple[Spot, ...]
    decor: int
    """Seed of details that captions never mention: hair, windows, blades of grass."""

    def replace_spec(self, index: int, spec: Spec) -> "Blueprint":
        specs = (*self.specs[:index], spec, *self.specs[index + 1 :])
        return replace(self, specs=specs)


@dataclass(frozen=True)
class Thing:
    """A placed object; `row` is `front` or `back` if it stands on the ground, else None."""

    spec: Spec
    box: Box
    row: str | None


@dataclass(frozen=True)
class Scene:
    """Placed objects, and all relations that are true of them, sorted."""

    background: str
    things: tuple[Thing, ...]
    ties: tuple[Tie, ...]
    relations: tuple[Tie, ...]
    decor: int

    def graph(self) -> dict[str, Any]:
        """Return the scene graph in the form of `scenes.jsonl`."""
        specs = [thing.spec for thing in self.things]
        return {
            "background": self.background,
            "objects": [
                {"kind": s.kind, "colour": s.colour, "size": s.size, "state": s.state}
                for s in specs
            ],
            "relations": [list(tie) for tie in self.relations],
        }


NEXT_TO = 0.08
SHARED_ABOVE, SHARED_DEPTH = 0.3, 0.5
TOUCHING = 0.02

_INVERSES = {"left of": "right of", "above": "below", "in front of": "behind", "next to": "next to"}
INVERSES = _INVERSES | {inverse: name for name, inverse in _INVERSES.items()}

IMPLIED: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("hold", "wear", "pull", "push", "walk", "fly"), ("with",)
)
IMPLIED |= {"ride": ("with", "on")}


def all_relations(things: Sequence[Thing], ties: Sequence[Tie]) -> tuple[Tie, ...]:
    """Return `ties`, implied and spatial relations, and the inverses of all of them, sorted.

    Contacts and actions come from the blueprint, spatial relations from the boxes. The rules decide
    every ordered pair (a, b):

    - left of / right of: the boxes do not overlap horizontally.
    - above / below: the boxes share at least 30% of the narrower width, a ends (within 0.02) where
      b begins or higher, and a does not stand on the ground. An object under a table is below the
      table.
    - in front of / behind: both stand on the ground, a is nearer to the viewer, and the boxes share
      at least half of the narrower width.
    - next to: both stand on the ground in the same row, at most 0.08 of the image apart.
    - look at: a is an awake person or animal, faces b, and is next to b.
    - Actions imply relations: a person or animal that holds, wears, rides, pulls, pushes, walks or
      flies something is `with` it; a rider is `on` the mount. Between a wearer and a garment there
      is no other relation.
    """
    relations = set(ties)
    worn = {(tie.subject, tie.object) for tie in ties if tie.relation == "wear"}
    relations.update(
        Tie(t.subject, name, t.object) for t in ties for name in IMPLIED.get(t.relation, ())
    )
    relations.update(
        Tie(a, name, b)
        for a in range(len(things))
        for b in range(len(things))
        if a != b and (a, b) not in worn and (b, a) not in worn
        for name in spatial(things[a], things[b])
    )
    relations.update(
        Tie(t.object, INVERSES[t.relation], t.subject)
        for t in tuple(relations)
        if t.relation in INVERSES
    )
    return tuple(sorted(relations))


def spatial(a: Thing, b: Thing) -> Iterator[str]:
    """Yield the names of the spatial relations a -> b, one direction of each inverse pair."""
    if a.box.x2 <= b.box.x1:
        yield "left of"
    over = a.row is None and a.box.overlap_x(b.box) >= SHARED_ABOVE
    if over and a.box.y2 <= b.box.y1 + TOUCHING:
        yield "above"
    if a.row == "front" and b.row == "back" and a.box.overlap_x(b.box) >= SHARED_DEPTH:
        yield "in front of"
    gap = max(a.box.x1 - b.box.x2, b.box.x1 - a.box.x2)
    if a.row is not None and a.row == b.row and 0 <= gap <= NEXT_TO:
        yield "next to"
        awake = a.spec.kind in (*PEOPLE, *BEASTS) and a.spec.state != "sleeping"
        if awake and (b.box.cx - a.box.cx) * a.spec.facing > 0:
            yield "look at"
