"""The words for kinds, hypernyms, attributes and relations, most common first."""

from __future__ import annotations

from dataclasses import dataclass

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
    past: str | None


VERBS: dict[str, tuple[Verb, ...]] = {
    "hold": (
        Verb("hold", "holds", "holding", "held"),
        Verb("carry", "carries", "carrying", "carried"),
    ),
    "ride": (Verb("ride", "rides", "riding", "ridden"),),
    "wear": (Verb("wear", "wears", "wearing", "worn"),),
    "chase": (
        Verb("chase", "chases", "chasing", "chased"),
        Verb("run after", "runs after", "running after", None),
    ),
    "look at": (
        Verb("look at", "looks at", "looking at", None),
        Verb("watch", "watches", "watching", "watched"),
    ),
    "pull": (
        Verb("pull", "pulls", "pulling", "pulled"),
        Verb("drag", "drags", "dragging", "dragged"),
    ),
    "push": (Verb("push", "pushes", "pushing", "pushed"),),
    "kick": (Verb("kick", "kicks", "kicking", "kicked"),),
    "fly": (Verb("fly", "flies", "flying", "flown"),),
    "walk": (Verb("walk", "walks", "walking", "walked"),),
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
