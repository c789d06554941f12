"""The data of a scene: a blueprint, and the placed objects with their relations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple


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

    def moved(self, dx: float, dy: float) -> Box:
        return Box(self.x1 + dx, self.y1 + dy, self.x2 + dx, self.y2 + dy)

    def overlap_x(self, other: Box) -> float:
        """Return the horizontal overlap as a share of the narrower box; negative if apart."""
        common = min(self.x2, other.x2) - max(self.x1, other.x1)
        return common / min(self.width, other.width)

    def meets(self, other: Box) -> bool:
        apart_x = self.x1 >= other.x2 or other.x1 >= self.x2
        apart_y = self.y1 >= other.y2 or other.y1 >= self.y2
        return not (apart_x or apart_y)


def around(boxes: list[Box]) -> Box:
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

    def with_spec(self, index: int, spec: Spec) -> Blueprint:
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
