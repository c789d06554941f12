"""The kinds of objects, and the words for kinds, hypernyms, attributes and relations."""

from dataclasses import dataclass, field

COLOURS = {
    "red": (214, 40, 40),
    "orange": (245, 132, 20),
    "yellow": (250, 210, 40),
    "green": (45, 150, 60),
    "blue": (40, 90, 210),
    "purple": (132, 58, 170),
    "pink": (248, 140, 185),
    "brown": (130, 80, 42),
    "black": (42, 42, 46),
    "white": (250, 250, 248),
    "gray": (145, 148, 152),
}

SIZES = {"small": 0.68, "medium": 1.0, "large": 1.4}
"""Factors on the extent of a kind."""

OUTDOORS = ("park", "street", "beach", "snow", "desert", "field")
BACKGROUNDS = (*OUTDOORS, "room", "sea")

LAND, ROOM, SEA = frozenset(OUTDOORS), frozenset({"room"}), frozenset({"sea"})
ANYWHERE = LAND | ROOM


@dataclass(frozen=True)
class Kind:
    """One kind of object.

    Attributes:
        extent: width and height at medium size, as fractions of the image.
        extents: the extents of states with another shape.
        states: the states of an object that is in no relation.
        places: the backgrounds in which the object may stand by itself. If empty, it is only held,
            worn, or on other objects.
        top: height of the surface that carries other objects, from 0 (top of the box) to 1.
    """

    name: str
    hypernyms: tuple[str, ...]
    extent: tuple[float, float]
    states: tuple[str, ...] = ()
    places: frozenset[str] = frozenset()
    coloured: bool = True
    sized: bool = True
    extents: dict[str, tuple[float, float]] = field(default_factory=dict)
    top: float | None = None


PERSON_STATES = ("standing", "running", "waving")
BEAST_STATES = ("standing", "running", "sleeping")


def _person(name: str, width: float, height: float, *hypernyms: str) -> Kind:
    extents = {"sitting": (width * 1.05, height * 0.86), "running": (width * 1.25, height)}
    nouns, extent = ("person", *hypernyms), (width, height)
    return Kind(name, nouns, extent, PERSON_STATES, ANYWHERE, False, False, extents)


def _beast(name: str, extent: tuple[float, float], *states: str, indoors: bool = True) -> Kind:
    width, height = extent
    extents = {
        "sleeping": (width, height * 0.58),
        "sitting": (width * 0.72, height * 1.1),
        "running": (width * 1.12, height),
    }
    places = ANYWHERE if indoors else LAND
    return Kind(name, ("animal",), extent, (*BEAST_STATES, *states), places, extents=extents)


_ALL = (
    _person("man", 0.17, 0.42),
    _person("woman", 0.17, 0.40),
    _person("boy", 0.135, 0.29, "child"),
    _person("girl", 0.135, 0.28, "child"),
    _beast("dog", (0.20, 0.155), "sitting"),
    _beast("cat", (0.17, 0.125), "sitting"),
    _beast("horse", (0.30, 0.27), indoors=False),
    _beast("cow", (0.29, 0.21), indoors=False),
    Kind("bird", ("animal",), (0.11, 0.095), ("sitting",), LAND,
         extents={"flying": (0.16, 0.12)}),
    Kind("duck", ("animal",), (0.13, 0.12), ("standing",), LAND,
         extents={"swimming": (0.14, 0.10), "flying": (0.18, 0.13)}),
    Kind("fish", ("animal",), (0.17, 0.10), ("swimming", "jumping"), SEA,
         extents={"jumping": (0.15, 0.14)}),
    Kind("car", ("vehicle",), (0.30, 0.155), (), LAND, top=0.0),
    Kind("bus", ("vehicle",), (0.38, 0.215), (), LAND, top=0.0),
    Kind("truck", ("vehicle",), (0.36, 0.20), (), LAND, top=0.0),
    Kind("bicycle", ("vehicle",), (0.25, 0.165), (), LAND),
    Kind("wagon", ("vehicle",), (0.20, 0.125), (), LAND, top=0.25),
    Kind("boat", ("vehicle",), (0.32, 0.30), (), SEA),
    Kind("plane", ("vehicle",), (0.32, 0.16), ("parked",), LAND,
         extents={"flying": (0.32, 0.13)}),
    Kind("tree", ("plant",), (0.24, 0.40), ("leafy", "bare"), LAND, top=0.0),
    Kind("flower", ("plant",), (0.09, 0.15), ("blooming", "wilted"), LAND),
    Kind("house", ("building",), (0.31, 0.31), ("lit", "dark"), LAND, top=0.0),
    Kind("chair", ("furniture",), (0.15, 0.25), (), ANYWHERE, top=0.5),
    Kind("bench", ("furniture",), (0.32, 0.23), (), ANYWHERE, top=0.47),
    Kind("table", ("furniture",), (0.30, 0.19), (), ANYWHERE, top=0.0),
    Kind("lamp", ("furniture",), (0.12, 0.22), ("lit", "unlit"), ROOM),
    Kind("ball", ("toy",), (0.09, 0.09), (), ANYWHERE),
    Kind("kite", ("toy",), (0.14, 0.20)),
    Kind("balloon", ("toy",), (0.10, 0.19)),
    Kind("umbrella", (), (0.26, 0.24), ("open", "closed"), frozenset({"beach"}),
         extents={"closed": (0.07, 0.22)}),
    Kind("cup", ("container",), (0.085, 0.08), ("full", "empty")),
    Kind("bottle", ("container",), (0.06, 0.14), ("full", "empty"), ROOM),
    Kind("book", (), (0.10, 0.10), ("open", "closed"), extents={"open": (0.14, 0.085)}),
    Kind("box", ("container",), (0.19, 0.135), ("open", "closed"), ANYWHERE),
    Kind("basket", ("container",), (0.19, 0.15), ("full", "empty"), ANYWHERE),
    Kind("hat", (), (0.12, 0.075), sized=False),
    Kind("shirt", (), (0.1, 0.12), sized=False),
    Kind("dress", (), (0.1, 0.18), sized=False),
)  # fmt: skip

KINDS = {kind.name: kind for kind in _ALL}
PEOPLE = ("man", "woman", "boy", "girl")
BEASTS = ("dog", "cat", "horse", "cow")
CLOTHES = {"man": "shirt", "boy": "shirt", "woman": "dress", "girl": "dress"}


def is_a(kind: str, noun: str) -> bool:
    """Return whether an object of `kind` may be called `noun` (a kind or a hypernym)."""
    return kind == noun or noun in KINDS[kind].hypernyms


NOUNS: dict[str, tuple[str, ...]] = {
    "man": ("man", "guy"),
    "woman": ("woman", "lady"),
    "bicycle": ("bicycle", "bike"),
    "plane": ("plane", "airplane"),
    "boat": ("boat", "sailboat"),
    "car": ("car", "automobile"),
    "cup": ("cup", "mug"),
    "child": ("child", "kid"),
    "wagon": ("wagon", "cart"),
    "furniture": ("piece of furniture",),
    "sea": ("sea", "ocean"),
    "street": ("street", "road"),
}
"""Words of a kind, hypernym or background, if there are others than its name."""

_PLURALS = {
    "man": "men",
    "woman": "women",
    "person": "people",
    "child": "children",
    "fish": "fish",
    "piece of furniture": "pieces of furniture",
}

NUMERALS = {2: "two", 3: "three", 4: "four"}

COLOUR_WORDS = {"gray": ("gray", "grey")}
SIZE_WORDS = {
    "small": ("small", "little", "tiny"),
    "medium": ("medium-sized",),
    "large": ("large", "big", "huge"),
}

ACTIVITIES = {
    "standing": "stand",
    "running": "run",
    "sleeping": "sleep",
    "sitting": "sit",
    "flying": "fly",
    "swimming": "swim",
    "jumping": "jump",
    "waving": "wave",
    "parked": "park",
}
"""States that are verbs and take prepositions: participle -> lemma."""


@dataclass(frozen=True)
class Verb:
    """Forms of a verb for a relation. `past` is None if there is no passive."""

    lemma: str
    third: str
    ing: str
    past: str | None = None


def _verbs(*forms: str) -> tuple[Verb, ...]:
    return tuple(Verb(*form.split(", ")) for form in forms)


VERBS: dict[str, tuple[Verb, ...]] = {
    "hold": _verbs("hold, holds, holding, held", "carry, carries, carrying, carried"),
    "ride": _verbs("ride, rides, riding, ridden"),
    "wear": _verbs("wear, wears, wearing, worn"),
    "chase": _verbs("chase, chases, chasing, chased", "run after, runs after, running after"),
    "look at": _verbs("look at, looks at, looking at", "watch, watches, watching, watched"),
    "pull": _verbs("pull, pulls, pulling, pulled", "drag, drags, dragging, dragged"),
    "push": _verbs("push, pushes, pushing, pushed"),
    "kick": _verbs("kick, kicks, kicking, kicked"),
    "fly": _verbs("fly, flies, flying, flown"),
    "walk": _verbs("walk, walks, walking, walked"),
}

PREPOSITIONS: dict[str, tuple[str, ...]] = {
    "left of": ("to the left of", "left of", "on the left of"),
    "right of": ("to the right of", "right of", "on the right of"),
    "above": ("above", "over"),
    "below": ("below", "under", "beneath", "underneath"),
    "in front of": ("in front of",),
    "behind": ("behind",),
    "next to": ("next to", "beside"),
    "on": ("on", "on top of"),
    "in": ("in", "inside"),
    "with": ("with",),
}

BACKGROUND_PHRASES: dict[str, tuple[tuple[str, str], ...]] = {
    "park": (("in", "a"), ("in", "the")),
    "street": (("on", "a"), ("on", "the")),
    "beach": (("on", "the"), ("on", "a"), ("at", "the")),
    "snow": (("in", "the"), ("on", "the")),
    "desert": (("in", "the"), ("in", "a")),
    "field": (("in", "a"), ("on", "a")),
    "room": (("in", "a"), ("in", "the")),
    "sea": (("on", "the"), ("at", "the")),
}
"""Possible prepositions and articles of each background."""


def words_of(noun: str) -> tuple[str, ...]:
    return NOUNS.get(noun, (noun,))


def plural(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    if word.endswith(("s", "x", "ch")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def article(phrase: str) -> str:
    """Return the indefinite article for `phrase`."""
    return "an" if phrase[0] in "aeiou" else "a"
