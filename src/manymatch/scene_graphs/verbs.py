"""The verbs of relations as attributes of their subjects, as in the figures of CORA."""

from collections.abc import Callable
from dataclasses import replace

from manymatch.batch.scene_graph import MAX_ATTRIBUTES, Relation, SceneGraph
from manymatch.scene_graphs.lexicon import DIRECTIONS, LOCATING, PREPOSITIONS, SPATIAL, words

_VOWELS = frozenset("aeiou")
_SYLLABIC = _VOWELS | {"y"}
_DOUBLE = frozenset("aefilosz")
"""Letters that may be double at the end of a base form."""
_BEFORE_L = frozenset("aeiourl")
_SILENT = ("c", "dg", "is", "rg", "u", "v", "z")
"""Letters that end no base form without "e"."""
_IRREGULAR = {"lie": "lying", "tie": "tying", "die": "dying"}


def present_participle(lemma: str) -> str:
    """ "run" -> "running", "ride" -> "riding", "open" -> "opening".

    Attributes have this form, so that "runs", "ran" and "is running" give the same attribute.
    """
    if lemma in _IRREGULAR:
        return _IRREGULAR[lemma]
    if lemma.endswith("e") and not lemma.endswith(("ee", "oe", "ye")) and len(lemma) > 2:
        return lemma[:-1] + "ing"
    return lemma + lemma[-1] * _doubles(lemma) + "ing"


def is_participle(word: str) -> bool:
    """Return whether `word` has the form of a present participle: "playing", but not "swing"."""
    return word.endswith("ing") and not _SYLLABIC.isdisjoint(word[:-3])


def participle_base(word: str) -> str:
    """Return the base form of a participle without a lemma: "playing", "sitting", "riding"."""
    stem = word.removesuffix("ing")
    if stem[-2:-1] == stem[-1:] not in _DOUBLE:
        return stem[:-1]
    if stem.endswith(_SILENT) or (stem.endswith("l") and stem[-2:-1] not in _BEFORE_L):
        return stem + "e"
    return verb_base(word, stem)


def verb_base(word: str, lemma: str) -> str:
    """Return the base form of `word`: `lemma`, unless the spelling excludes it.

    spaCy's rules derive "rid" from "riding" and "star" from "staring". These verbs would double
    their last letter ("ridding", "starring"), so the base form must end in "e".
    """
    doubled = word.removesuffix("ing")
    if lemma == doubled + "e" and doubled[-2:-1] == doubled[-1:] not in _DOUBLE:
        return doubled[:-1]  # "gutting" is "gut", but "falling" is "fall".
    if word in (lemma + "ing", lemma + "ed", lemma + "es") and _doubles(lemma):
        return lemma + "e"
    return lemma


def _doubles(lemma: str) -> bool:
    """Return whether the last consonant doubles: a single syllable with one vowel before it."""
    if len(lemma) < 3 or lemma[-1] in "aeiouwxy" or lemma[-2] not in _VOWELS:
        return False
    start = lemma.replace("qu", "q")[:-2]
    return not _VOWELS & set(start)


GraphReader = Callable[[SceneGraph], SceneGraph]
"""What a method makes of a parsed graph."""

_LINKS = (
    LOCATING
    | PREPOSITIONS
    | DIRECTIONS
    | {word for phrase in SPATIAL for word in phrase}
    | words("""
    about after as away before during except for from like of off onto than to together toward
    towards until upon where without
    """)
)
_PARTICIPLES = words("""
    beaten bent bitten bound broken built caught chosen done drawn driven eaten fallen flown found
    frozen given grown held hidden hung kept laid lit lost made ridden seen sent sewn shot shown
    sold spun stuck struck strung swept taken thrown tied torn worn woven wound written
""")
"""Past participles that do not end in "ed"."""
_BASES = words("bleed breed embed feed need proceed seed shed shred sled speed wed weed")
"""Verbs that end in "ed"."""


def as_parsed(graph: SceneGraph) -> SceneGraph:
    return graph


def add_verbs(graph: SceneGraph) -> SceneGraph:
    """Return the graph where the verb of a relation is an attribute of its subject, too.

    "man sit on bench" adds "sitting" to the man, and "car parked beside tree" adds "parked". "be",
    "have", prepositions and adjectives ("full of") add nothing. An object has at most
    `MAX_ATTRIBUTES` attributes; the parsed ones come first.

    References:
        Pham et al., CORA, CVPR 2024, figures 5 and 6 ("man falling", "spectators watching").
    """
    attributes = [list(phrases) for phrases in graph.attributes]
    for relation in graph.relations:
        phrases, action = attributes[relation.subject], _action(relation, graph)
        if action and action not in phrases and len(phrases) < MAX_ATTRIBUTES:
            phrases.append(action)
    return replace(graph, attributes=tuple(map(tuple, attributes)))


def _action(relation: Relation, graph: SceneGraph) -> str:
    """Return the participle of the verb that the label begins with, or "" without a verb."""
    verb: list[str] = []
    for word in relation.label.split():
        if word in _LINKS:
            break
        verb.append(word)
    if not verb or verb[-1] in {"be", "have"}:
        return ""
    phrase = " ".join(verb)
    if any(phrase in attribute.split() for attribute in graph.attributes[relation.subject]):
        return ""  # An adjective: "full of".
    passive = verb[-1] in _PARTICIPLES or (verb[-1].endswith("ed") and verb[-1] not in _BASES)
    if passive or is_participle(verb[-1]):
        return phrase
    return " ".join([*verb[:-1], present_participle(verb[-1])])
