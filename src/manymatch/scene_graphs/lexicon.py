"""Closed lists of words that the rules know. Everything else they read from the parse."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SPATIAL = frozenset(
    tuple(phrase.split())
    for phrase in (
        "in front of",
        "in back of",
        "in between",
        "in the middle of",
        "in the center of",
        "on top of",
        "on the top of",
        "on the back of",
        "on the side of",
        "at the side of",
        "by the side of",
        "on the edge of",
        "at the edge of",
        "on the left of",
        "on the right of",
        "to the left of",
        "to the right of",
        "to the side of",
        "on the other side of",
        "left of",
        "right of",
        "next to",
        "close to",
        "adjacent to",
        "away from",
        "out of",
        "inside of",
        "outside of",
        "off of",
    )
)
"""Several words that act as one preposition."""

SPATIAL_STARTS = frozenset(phrase[0] for phrase in SPATIAL)
SPATIAL_LENGTHS = tuple(sorted({len(phrase) for phrase in SPATIAL}, reverse=True))

COLOURS = _words("""
    beige black blond blonde blue brown crimson cyan gold golden gray green grey maroon orange
    pink purple red scarlet silver tan teal turquoise violet white yellow
""")

PRONOUNS = _words("""
    anybody anyone anything everybody everyone everything nobody none nothing one ones other
    others somebody someone something there
""")
"""Pronouns that a tagger may take for nouns."""

RELATIVES = _words("that which who whom whose")

MEASURES = _words("""
    bag band basket bottle bouquet bowl box bucket bunch can cluster collection crowd cup flock
    glass gang group handful herd line loaf mound mug pack pair party patch piece pile plate pot
    row school series set sheet slice stack stream string team trio
""")
"""Nouns that with "of" and a noun name one thing: "pair of shoes", "group of people"."""

QUANTITIES = _words("couple dozen dozens hundreds lot lots number plenty variety")
"""Nouns that with "of" only count: "a couple of dogs" is dogs."""

COPULAS = _words("be seem look appear become remain stay")
"""Verbs that tie an adjective to their subject."""

STATES = _words("""
    crouch float fly hang hover jump kneel lay lean lie park perch pose rest run sit sleep smile
    squat stand swim walk wave
""")
"""Verbs that describe their subject even where they also relate it to something."""

MOMENTS = _words("afternoon day evening morning night time today")
"""Nouns that as adverbs say when, and are not seen."""

UNSEEN_ADVERBS = _words(
    """also even here how just not now only so still then there too when where while why"""
)
"""Adverbs that say nothing that a picture shows."""
