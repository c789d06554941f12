"""Which objects may hold, ride, chase ... which objects, and in which states."""

from __future__ import annotations

from dataclasses import dataclass

from manymatch.scenes.kinds import BEASTS, CLOTHES, KINDS, LAND, PEOPLE, SEA, Kind
from manymatch.scenes.world import Blueprint, Spec, Tie

ANY = ("*",)
"""Any state that the kind may have."""
POSED = (None,)
"""No state: the relation determines the pose."""


@dataclass(frozen=True)
class Rule:
    """Kinds and states that may have `relation`, and the rule's weight in the draw.

    One of the two objects is the anchor, from whose position the other object's follows.
    """

    relation: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    subject_states: tuple[str | None, ...] = ANY
    object_states: tuple[str | None, ...] = ANY
    places: frozenset[str] = frozenset()
    weight: float = 1.0

    @property
    def anchor_is_subject(self) -> bool:
        return self.relation not in ("ride", "on", "in", "below")


_INDOORS = LAND | {"room"}
_RUNNERS = (*PEOPLE, *BEASTS)
_HELD = ("ball", "cup", "bottle", "book", "flower", "umbrella", "balloon", "basket")
_LOADS = ("cup", "bottle", "book", "ball", "hat", "basket", "box")
_UPRIGHT = ("standing", "sitting")

RULES = (
    Rule("hold", PEOPLE, _HELD, _UPRIGHT, places=_INDOORS, weight=3.5),
    Rule("ride", PEOPLE, ("horse", "bicycle"), POSED, ("standing", "running", None), LAND, 1.5),
    Rule("wear", (*PEOPLE, "dog", "cat", "horse", "cow"), ("hat",), ("standing", "sitting", None),
         places=_INDOORS, weight=1.0),
    Rule("chase", _RUNNERS, _RUNNERS, ("running",), ("running",), LAND, 2.5),
    Rule("on", _LOADS, ("table",), places=_INDOORS, weight=1.5),
    Rule("on", ("lamp",), ("table",), places=frozenset({"room"}), weight=0.6),
    Rule("on", ("cat", "dog"), ("table", "bench", "chair", "box"), ("sleeping", "sitting"),
         ("closed", None), _INDOORS, 1.0),
    Rule("on", PEOPLE, ("chair", "bench"), ("sitting",), places=_INDOORS, weight=1.5),
    Rule("on", ("bird",), ("house", "tree", "car", "bus", "truck", "bench", "table"),
         ("sitting",), places=LAND, weight=1.0),
    Rule("in", ("cat", "ball", "bottle", "book"), ("box",),
         ("sitting", "full", "empty", "closed", None), ("open",), _INDOORS, 1.0),
    Rule("in", ("cat", "ball", "bottle"), ("basket",), ("sitting", "full", "empty", None),
         ("empty",), _INDOORS, 0.8),
    Rule("in", ("dog", "cat", "boy", "girl"), ("wagon",), ("sitting",), places=LAND, weight=0.5),
    Rule("in", PEOPLE, ("boat",), ("standing", "waving"), places=SEA, weight=3.0),
    Rule("below", ("cat", "ball", "basket", "box", "dog"), ("table",),
         ("sleeping", "sitting", "full", "empty", "open", "closed", None),
         places=_INDOORS, weight=1.2),
    Rule("pull", (*PEOPLE, "dog", "horse", "cow"), ("wagon",), POSED, places=LAND, weight=1.5),
    Rule("push", PEOPLE, ("wagon", "box", "car"), POSED, places=LAND, weight=1.2),
    Rule("kick", PEOPLE, ("ball",), POSED, places=_INDOORS, weight=1.0),
    Rule("fly", PEOPLE, ("kite",), POSED, places=LAND, weight=1.0),
    Rule("walk", PEOPLE, ("dog",), POSED, ("standing",), LAND, 1.0),
)  # fmt: skip

CLOTHING_RULES = tuple(
    Rule("wear", (person,), (garment,), places=_INDOORS | SEA)
    for person, garment in CLOTHES.items()
)

FLYERS = {"bird": "flying", "duck": "flying", "plane": "flying", "balloon": None}
"""Kinds that may be in the sky without a relation -> their state in the sky."""


def state_fits(kind: Kind, state: str | None, states: tuple[str | None, ...]) -> bool:
    """Return whether an object of `kind` can have `state`, and a rule's `states` allow it."""
    known = state is None or state in kind.states or state in kind.extents
    return known and (states == ANY or state in states)


def fits(rule: Rule, subject: Spec, object: Spec) -> bool:
    return (
        subject.kind in rule.subjects
        and object.kind in rule.objects
        and state_fits(KINDS[subject.kind], subject.state, rule.subject_states)
        and state_fits(KINDS[object.kind], object.state, rule.object_states)
    )


def allowed(blueprint: Blueprint) -> bool:
    """Return whether rules allow every tie and every cluster's position, and people are dressed."""
    return (
        all(_tie_allowed(blueprint, tie) for tie in blueprint.ties)
        and all(_spot_allowed(blueprint, spot.root, spot.row) for spot in blueprint.spots)
        and all(_dressed(blueprint, k) for k in range(len(blueprint.specs)))
    )


def _dressed(blueprint: Blueprint, index: int) -> bool:
    """Return whether a person wears exactly one garment, not counting hats."""
    worn = [blueprint.specs[t.object].kind for t in blueprint.ties if t[:2] == (index, "wear")]
    person = blueprint.specs[index].kind in PEOPLE
    return not person or sum(kind in CLOTHES.values() for kind in worn) == 1


def _tie_allowed(blueprint: Blueprint, tie: Tie) -> bool:
    subject, object = blueprint.specs[tie.subject], blueprint.specs[tie.object]
    return any(
        rule.relation == tie.relation
        and blueprint.background in rule.places
        and fits(rule, subject, object)
        for rule in (*RULES, *CLOTHING_RULES)
    )


def _spot_allowed(blueprint: Blueprint, root: int, row: str) -> bool:
    spec = blueprint.specs[root]
    kind = KINDS[spec.kind]
    if spec.kind in PEOPLE and spec.state == "sitting":
        return False  # then the chair or bench is the root
    if row == "sky":
        return spec.kind in FLYERS and FLYERS[spec.kind] == spec.state
    tied = any(
        root in (tie.subject, tie.object) and tie.relation != "wear" for tie in blueprint.ties
    )
    free = spec.state in kind.states or (spec.state is None and not kind.states)
    return blueprint.background in kind.places and (tied or free)
