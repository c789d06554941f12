"""Repairs of numbers and counts: "one of the dogs", "half a dozen eggs", "a 6 foot tall man"."""

from manymatch.scene_graphs.lexicon import DIMENSIONS, UNITS
from manymatch.scene_graphs.tree import Repair, Tree

_COUNTS = frozenset({"all", "both", "each", "few", "many", "most", "several", "some"})
_UNCOUNTED = frozenset({"all", "both", "each", "most", "some"})


def _counted_of(tree: Tree, token: int) -> None:
    """In "one of the two dogs is jumping" one dog jumps: the number counts the noun after "of"."""
    counts, of = tree.tags[token] == "CD" or tree.words[token] in _COUNTS, token + 1
    if not counts or of not in tree.below(token, {"prep"}) or tree.words[of] != "of":
        return
    noun = next(iter(tree.below(of, {"pobj"})), None)
    if noun is None or not (tree.tags[noun] in {"NNS", "NNPS"} or tree.lemmas[noun] == "people"):
        return
    for number in tree.below(noun, {"nummod"}):
        tree.deps[number] = "det"
    tree.replace(token, noun)
    tree.deps[token] = "det" if tree.words[token] in _UNCOUNTED else "nummod"
    for child in [t for t in tree.children[token] if t > of]:
        tree.attach(child, noun, tree.deps[child])


def _measure(tree: Tree, token: int) -> None:
    """In "a 6 foot tall man" and "a two story house" the number belongs to the unit."""
    unit, after = token + 1, token + 2
    if tree.tags[token] != "CD" or after >= len(tree) or tree.words[unit] not in UNITS:
        return
    measured = tree.heads[unit]
    if tree.words[after] in DIMENSIONS:
        tree.attach(unit, after, "npadvmod")
        tree.attach(token, after, "advmod")
    elif measured > unit and tree.is_noun(measured) and tree.tags[unit] != "NNS":
        tree.attach(token, unit, "advmod")
        tree.tags[unit], tree.deps[unit] = "JJ", "amod"


def _dozens(tree: Tree, token: int) -> None:
    """In "half a dozen eggs" and "two dozen eggs" the words before belong to the number."""
    before = token - 1 - (tree.words[token - 1] == "a")
    if before < 0 or tree.deps[token] != "nummod":
        return
    if tree.words[before] == "half" or tree.tags[before] == "CD":
        tree.attach(before, token, "quantmod")


def _nothing_but(tree: Tree, token: int) -> None:
    """In "wearing nothing but shorts" one wears the shorts."""
    but = token + 1
    if "".join(tree.words[but : but + 1]) not in {"but", "except"}:
        return
    nouns = tree.below(but, {"pobj"}) or tree.below(token, {"conj"})
    for noun in nouns[:1]:
        tree.attach(noun, tree.heads[token], tree.deps[token])


COUNTING: tuple[Repair, ...] = (
    Repair(_counted_of),
    Repair(_measure, tags=frozenset({"CD"})),
    Repair(_dozens, {"dozen", "hundred", "thousand"}),
    Repair(_nothing_but, {"nothing"}),
)
