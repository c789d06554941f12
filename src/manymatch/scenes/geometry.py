"""All relations that are true of a scene.

Contacts and actions come from the blueprint, spatial relations from the boxes.

The rules decide every ordered pair (a, b):

- left of / right of: the boxes do not overlap horizontally.
- above / below: the boxes share at least 30% of the narrower width, a ends (within 0.02) where b
  begins or higher, and a does not stand on the ground. An object under a table is below the table.
- in front of / behind: both stand on the ground, a is nearer to the viewer, and the boxes share at
  least half of the narrower width.
- next to: both stand on the ground in the same row, at most 0.08 of the image apart.
- look at: a is an awake person or animal, faces b, and is next to b.
- Actions imply relations: a person or animal that holds, wears, rides, pulls, pushes, walks or
  flies something is `with` it; a rider is `on` the mount. Between a wearer and a garment there is
  no other relation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from manymatch.scenes.kinds import BEASTS, PEOPLE
from manymatch.scenes.world import Thing, Tie

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
    """Return `ties`, implied and spatial relations, and the inverses of all of them, sorted."""
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
    if _above(a, b):
        yield "above"
    if a.row == "front" and b.row == "back" and a.box.overlap_x(b.box) >= SHARED_DEPTH:
        yield "in front of"
    if _next_to(a, b):
        yield "next to"
        if _watches(a, b):
            yield "look at"


def _above(a: Thing, b: Thing) -> bool:
    return (
        a.row is None and a.box.overlap_x(b.box) >= SHARED_ABOVE and a.box.y2 <= b.box.y1 + TOUCHING
    )


def _next_to(a: Thing, b: Thing) -> bool:
    if a.row is None or a.row != b.row:
        return False
    gap = max(a.box.x1 - b.box.x2, b.box.x1 - a.box.x2)
    return 0 <= gap <= NEXT_TO


def _watches(a: Thing, b: Thing) -> bool:
    awake = a.spec.kind in (*PEOPLE, *BEASTS) and a.spec.state != "sleeping"
    return awake and (b.box.cx - a.box.cx) * a.spec.facing > 0
