"""Every relation that is true of a scene: contact and action as built, space by the boxes.

The rules, decided for ALL ordered pairs (a, b):

- left of / right of: the boxes have no common horizontal extent.
- above / below: they share at least 30% of the narrower one's width, a ends (within 0.02) where b
  begins or higher, and a does not stand on the ground. What is under a table is below it.
- in front of / behind: both stand on the ground, a nearer to the viewer, and they share at least
  half of the narrower one's width.
- next to: both stand on the ground in the same row, at most 0.08 of the picture apart.
- look at: a person or beast, awake, faces b, which is next to it.
- Actions imply what they show: who holds, wears, rides, pulls, pushes, walks or flies something is
  `with` it; who rides something is `on` it. Between a wearer and what it wears there is no other
  relation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from manymatch.scenes.kinds import BEASTS, PEOPLE
from manymatch.scenes.world import Thing, Tie

NEXT_TO = 0.08
SHARED_ABOVE, SHARED_DEPTH = 0.3, 0.5
TOUCHING = 0.02

INVERSES = {
    "left of": "right of",
    "right of": "left of",
    "above": "below",
    "below": "above",
    "in front of": "behind",
    "behind": "in front of",
    "next to": "next to",
}

IMPLIED = {
    "hold": ("with",),
    "wear": ("with",),
    "ride": ("with", "on"),
    "pull": ("with",),
    "push": ("with",),
    "walk": ("with",),
    "fly": ("with",),
}

RELATIONS = (
    *("left of", "right of", "above", "below", "in front of", "behind", "next to"),
    *("on", "in", "hold", "ride", "wear", "chase", "look at"),
    *("pull", "push", "kick", "fly", "walk", "with"),
)
"""The canonical names, twenty."""


def all_relations(things: Sequence[Thing], ties: Sequence[Tie]) -> tuple[Tie, ...]:
    """The closure: `ties`, what they imply, what the geometry shows, and the inverses of all."""
    found = set(ties)
    worn = {(tie.subject, tie.object) for tie in ties if tie.relation == "wear"}
    found.update(
        Tie(t.subject, name, t.object) for t in ties for name in IMPLIED.get(t.relation, ())
    )
    found.update(
        Tie(a, name, b)
        for a in range(len(things))
        for b in range(len(things))
        if a != b and (a, b) not in worn and (b, a) not in worn
        for name in spatial(things[a], things[b])
    )
    found.update(
        Tie(t.object, INVERSES[t.relation], t.subject)
        for t in tuple(found)
        if t.relation in INVERSES
    )
    return tuple(sorted(found))


def spatial(a: Thing, b: Thing) -> Iterator[str]:
    """Names of the relations a -> b that the geometry alone decides (one direction of inverses)."""
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
