"""Attributes of objects: adjectives, numerals, participles and verbs of state."""

from collections.abc import Container

from manymatch.scene_graphs.clauses import direct_objects, is_passive, subjects
from manymatch.scene_graphs.lexicon import ACTIONS, COPULAS, UNSEEN_ADVERBS
from manymatch.scene_graphs.objects import COMPOUND, gathers
from manymatch.scene_graphs.tree import AUXILIARIES, Tree
from manymatch.scene_graphs.verbs import is_participle, present_participle

_DEGREES = frozenset({"advmod", "npadvmod", "quantmod", "neg"})
_ADJECTIVES = frozenset({"JJ", "VBG", "VBN"})
_NO_PREDICATES = AUXILIARIES | {"amod"}
_COMPLETING = frozenset({"xcomp", "ccomp", "attr", "acomp", "oprd", "prep", "agent"})
_ADVERBS = frozenset({"advmod", "prt"})


def find_attributes(
    tree: Tree, number: dict[int, int], count: int, denied: Container[int]
) -> list[list[str]]:
    """Return the attributes of each of the `count` objects, in the order of the caption."""
    attributes: list[list[str]] = [[] for _ in range(count)]
    for token in range(len(tree)):
        if token in denied:
            continue
        if described := bearers(tree, token):
            phrase = _adjective(tree, token)
        elif is_state(tree, token):
            phrase, described = _participle(tree, token), subjects(tree, token)
        for noun in described:
            if noun in number and phrase not in attributes[number[noun]]:
                attributes[number[noun]].append(phrase)
    return attributes


def bearers(tree: Tree, token: int) -> list[int]:
    """Return the nouns that `token` describes as an adjective, numeral, or participle before them.

    An adjective attached to another adjective describes the same noun: "a little brown dog" has
    two attributes. "no" is an attribute too: of all articles, only "no" changes the image.
    """
    while True:
        dep, head = tree.deps[token], tree.heads[token]
        if tree.is_noun(head) and (dep in {"amod", "nummod"} or tree.words[token] == "no"):
            while tree.deps[head] in COMPOUND:  # "A yellow school bus" is yellow.
                head = tree.heads[head]
            return [] if gathers(tree, head) else [head]
        if dep in {"acomp", "oprd"} and tree.is_verb(head):
            return direct_objects(tree, head) or subjects(tree, head)
        if tree.is_noun(token) or not (dep in {"amod", "conj"} or is_adjective_before(tree, token)):
            return []
        token = head


def is_adjective_before(tree: Tree, token: int) -> bool:
    """Return whether `token` is an adjective that the parser took for an adverb of the next one.

    "A little brown dog" is not a "slightly brown dog".
    """
    if tree.deps[token] not in {"advmod", "npadvmod"} or tree.tags[token] not in _ADJECTIVES:
        return False
    return tree.tags[tree.heads[token]] in _ADJECTIVES


def is_state(tree: Tree, token: int) -> bool:
    """Return whether the verb `token` describes its subject without relating it to an object."""
    if not tree.is_verb(token) or tree.deps[token] in _NO_PREDICATES:
        return False
    seen = any(_is_seen(tree, t) for t in tree.below(token, _ADVERBS))
    links = tree.lemmas[token] in COPULAS and not (tree.lemmas[token] == "look" and seen)
    if links or tree.below(token, _COMPLETING):  # "Looking up" is complete.
        return False
    if tree.deps[token] == "prep" and tree.below(token, {"pobj"}):
        return False  # "People, including two girls".
    if any(tree.below(adverb, {"prep"}) for adverb in tree.below(token, _ADVERBS)):
        return False  # "Walks up to a house".
    if is_passive(tree, token):
        return True
    return not direct_objects(tree, token) and _names_action(tree, token)


def _names_action(tree: Tree, verb: int) -> bool:
    """Return whether the verb has a participle that is a word: "sleeping", but not "ovening".

    The caption has the participle, or the verb is no noun, or a noun that captions use as a verb.
    """
    if is_participle(tree.words[verb]) or tree.lemmas[verb] in ACTIONS:
        return True
    return "VB" in tree.kinds[verb] and "NN" not in tree.kinds[verb]


def _adjective(tree: Tree, token: int) -> str:
    """Return the adjective with the adverbs before it: "very large"."""
    degrees = tree.below(token, _DEGREES)
    adverbs = [t for t in degrees if t < token and not is_adjective_before(tree, t)]
    adverbs = [t for t in adverbs if tree.tags[t] != "DT"]  # "A few".
    return " ".join(tree.words[t] for t in [*adverbs, token])


def _participle(tree: Tree, verb: int) -> str:
    """Return the participle with particle and adverbs: "lying down", "parked outside"."""
    words = [(t, tree.words[t]) for t in tree.below(verb, _ADVERBS) if _is_seen(tree, t)]
    passive = is_passive(tree, verb)
    words.append((verb, tree.words[verb] if passive else present_participle(tree.lemmas[verb])))
    return " ".join(word for _, word in sorted(words))


def _is_seen(tree: Tree, adverb: int) -> bool:
    return tree.words[adverb] not in UNSEEN_ADVERBS and not tree.children[adverb]
