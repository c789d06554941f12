"""Draw random blueprints: a background, clusters of tied objects, objects behind and in the sky."""

from dataclasses import dataclass, field
from random import Random

from manymatch.scenes.kinds import (
    BACKGROUNDS,
    BEASTS,
    CLOTHES,
    COLOURS,
    KINDS,
    LAND,
    PEOPLE,
    SEA,
    Kind,
)
from manymatch.scenes.layout import lay_out
from manymatch.scenes.world import Blueprint, Scene, Spec, Spot, Tie

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


_SIZE_WEIGHTS = {"small": 0.3, "medium": 0.4, "large": 0.3}
_SCENERY = ["house", "tree", "tree", "car", "bus", "truck", "bench", "horse", "cow"]
_INDOOR_SCENERY = ["chair", "table", "lamp", "bench"]
"""Kinds of objects in the back row."""
_SAME_AGAIN = 0.35
"""Probability that an object has a kind that the scene has already."""


def compose(rng: Random) -> tuple[Blueprint, Scene]:
    """Return a blueprint that fits into the image, and its scene."""
    while True:
        blueprint = _Draft(rng).blueprint()
        if len(blueprint.specs) >= 3 and allowed(blueprint) and (scene := lay_out(blueprint)):
            return blueprint, scene


@dataclass
class _Draft:
    """An unfinished blueprint."""

    rng: Random
    specs: list[Spec] = field(default_factory=list)
    ties: list[Tie] = field(default_factory=list)
    spots: list[Spot] = field(default_factory=list)
    background: str = ""

    def blueprint(self) -> Blueprint:
        rng = self.rng
        self.background = rng.choice(BACKGROUNDS)
        roots = [self._cluster() for _ in range(rng.choice((1, 2, 2, 3)))]
        shares = [rng.uniform(0.1, 1.0) for _ in range(len(roots) + 1)]
        for root, share in zip(roots, shares, strict=False):
            self.spots.append(Spot(root, "front", share / sum(shares)))
        if self.background != "sea":
            scenery = _INDOOR_SCENERY if self.background == "room" else _SCENERY
            for _ in range(rng.choice((0, 1, 1, 2))):
                root = self._add(self._kind(scenery))
                self.spots.append(Spot(root, "back", rng.uniform(0.1, 0.9)))
        if self.background != "room":
            for _ in range(rng.choice((0, 0, 1, 1, 2))):
                kind = self._kind(list(FLYERS))
                root = self._add(kind, (FLYERS[kind],))
                self.spots.append(Spot(root, "sky", rng.uniform(0.1, 0.9), rng.uniform(0.16, 0.32)))
        parts = tuple(self.specs), tuple(self.ties), tuple(self.spots)
        return Blueprint(self.background, *parts, rng.randrange(1 << 30))

    # Objects

    def _add(self, kind: str, states: tuple[str | None, ...] = ANY, facing: int = 0) -> int:
        rng, about = self.rng, KINDS[kind]
        known = {*about.states, *about.extents}
        possible = about.states if states == ANY else [s for s in states if s in known]
        sizes = list(_SIZE_WEIGHTS)
        self.specs.append(
            Spec(
                kind,
                rng.choice(list(COLOURS)) if about.coloured else None,
                rng.choices(sizes, list(_SIZE_WEIGHTS.values()))[0] if about.sized else None,
                rng.choice(possible or (None,)),
                facing or rng.choice((-1, 1)),
            )
        )
        index = len(self.specs) - 1
        if kind in PEOPLE:
            self.ties.append(Tie(index, "wear", self._add(CLOTHES[kind])))
        return index

    def _kind(self, among: list[str]) -> str:
        used = [spec.kind for spec in self.specs if spec.kind in among]
        if used and self.rng.random() < _SAME_AGAIN:
            return self.rng.choice(used)
        return self.rng.choice(among)

    # Clusters

    def _cluster(self) -> int:
        rules = [rule for rule in RULES if self.background in rule.places]
        if rules and self.rng.random() < 0.68:
            root = self._tied(self.rng.choices(rules, [rule.weight for rule in rules])[0])
        else:
            standing = [name for name, kind in KINDS.items() if self.background in kind.places]
            root = self._add(self._kind(standing))
        if self.background != "sea":
            self._extend()
        return root

    def _tied(self, rule: Rule) -> int:
        facing = self.rng.choice((-1, 1))
        anchored = list(rule.objects)
        if not rule.anchor_is_subject:
            anchored = [k for k in anchored if self.background in KINDS[k].places]
        states = rule.subject_states
        if rule.relation == "hold":
            states = ("standing",)  # `_extend` gives objects to seated people
        subject = self._add(self._kind(list(rule.subjects)), states, facing)
        object = self._add(self._kind(anchored), rule.object_states, facing)
        self.ties.append(Tie(subject, rule.relation, object))
        return subject if rule.anchor_is_subject else object

    def _extend(self) -> None:
        """Sometimes add a hat to a person, or an object to a person with a free hand."""
        index = self.rng.randrange(len(self.specs))
        spec = self.specs[index]
        relations = {tie.relation for tie in self.ties if tie.subject == index}
        hatted = any(
            tie.subject == index and self.specs[tie.object].kind == "hat" for tie in self.ties
        )
        if spec.kind in PEOPLE and not hatted and spec.state in ("standing", "sitting", None):
            if self.rng.random() < 0.3:
                self.ties.append(Tie(index, "wear", self._add("hat")))
            elif spec.state and "hold" not in relations and self.rng.random() < 0.4:
                held = self.rng.choice(("ball", "cup", "book", "balloon", "flower", "bottle"))
                self.ties.append(Tie(index, "hold", self._add(held)))
