"""Closed lists of words for the rules. All other information comes from the parse."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SPATIAL = """
    in front of, in back of, in between, in the middle of, in the center of, on top of,
    on the top of, on the back of, on the side of, at the side of, by the side of, on the edge of,
    at the edge of, on the left of, on the right of, to the left of, to the right of,
    to the side of, on the other side of, left of, right of, next to, close to,
    in the background of, adjacent to, away from, out of, inside of, outside of, off of
"""
SPATIAL = frozenset(tuple(phrase.split()) for phrase in _SPATIAL.split(","))
"""Phrases that act as one preposition."""

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
"""Pronouns that a tagger may tag as nouns."""

RELATIVES = _words("that which who whom whose")

MEASURES = _words("""
    bag band basket body bottle bouquet bowl box bucket bunch can cluster collection crowd cup flock
    glass gang group handful herd line loaf mound mug pack pair party patch piece pile plate pot
    row school series set sheet slice stack stream string team trio
""")
"""Nouns that name one object together with "of" and a noun: "pair of shoes"."""

QUANTITIES = _words("couple dozen dozens hundreds lot lots number plenty variety")
"""Nouns that only count, together with "of": "a couple of dogs" are dogs."""

COPULAS = _words("be seem look appear become remain stay")
"""Verbs that link an adjective to their subject."""

MOMENTS = _words("afternoon bit day evening feet foot inch mile morning night time today way")
"""Nouns of time and distance, which are not visible if used as adverbs."""

UNSEEN_ADVERBS = _words(
    "also even here how just not now only so still then there too when where while why"
)
"""Adverbs that say nothing visible."""

LOCATING = _words("""
    above against along alongside amid among around atop behind below beneath beside between by in
    inside near on outside over under underneath within
""") | {phrase for phrase in map(" ".join, SPATIAL) if not phrase.endswith("from")}
"""Prepositions that say where something is, whatever the verb."""

PLACES = _words("""
    airport alley area arena bathroom bay beach bedroom bridge building bus cafe city classroom
    concert corner court desert dirt driveway field floor forest garden grass ground gym hall
    hallway harbor hill house ice intersection kitchen lake lawn living market mountain museum
    ocean office park path playground pond pool rain restaurant rink river road room sand school
    sea shop shore sidewalk sky snow stadium stage station store street subway sun town track trail
    water woods yard zoo
""")
"""Places of whole scenes: "in the park" describes the subject of a verb, not its object."""

PLACING = _words("hang lay load place pour put set stack throw")
"""Verbs that move their object to the following place."""

OBJECT_PREPOSITIONS = {
    "look": "at",
    "stare": "at",
    "gaze": "at",
    "point": "at",
    "run": "after",
    "chase": "after",
    "listen": "to",
    "talk": "to",
}
"""Verb -> preposition whose noun acts like a direct object."""

PREPOSITIONS = _words("""
    above across against along alongside among around at atop behind below beneath beside between by
    down from in inside into near off on onto outside over past through toward towards under
    underneath up with within
""")

RESTING = _words("park perch seat")
MOVING = _words("drive fly go jump lie pass run sit sleep stand stop swim walk")
"""Verbs whose "by" gives a place, not an agent. `MOVING` verbs with "is" have an agent."""

STATES = _words("crouch fly jump kneel lie run sit sleep smile stand swim wave")
"""Verbs whose participle before a noun describes the noun, as in "standing horse"."""

GEAR = _words("""
    area bag board cap goggles hole lane lesson machine match pool position race shoe short suit
    team track trunk vest
""")
"""Nouns that form a compound with such a participle, as in "swimming pool"."""

WORN = _words("""
    apron attire backpack bag beard belt bikini blouse boot cap cape clothing coat coats costume
    coverall dress garb gear glass glasses glove goggles gown hair hat headscarf helmet hoodie
    jacket jean jeans jersey kilt makeup mask outfit overall overalls pajama pajamas pant pants
    ponytail robe sandal sari scarf shirt shoe short shorts skirt sneaker sock suit sunglass
    sunglasses sweater sweatshirt swimsuit swimwear t-shirt tank tee tee-shirt tie top trunk
    trunks tshirt turban tuxedo uniform vest wig
""")
"""Clothes and similar objects: a participle after them describes their wearer."""

COVERING = _words("cover depict display fall feature flow hang lie match read say show")
"""Verbs whose subject may be clothes."""
