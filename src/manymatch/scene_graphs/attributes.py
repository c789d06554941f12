"""What a caption says of its objects: adjectives, numerals, participles and verbs of state."""

from __future__ import annotations

from manymatch.scene_graphs.clauses import direct_objects, is_noun, is_passive, is_verb, subjects
from manymatch.scene_graphs.inflection import present_participle
from manymatch.scene_graphs.lexicon import COPULAS, STATES, UNSEEN_ADVERBS
from manymatch.scene_graphs.tree import Tree

_MODIFIERS = frozenset({"amod", "nummod"})
_PREDICATES = frozenset({"acomp", "oprd"})
_DEGREES = frozenset({"advmod", "npadvmod", "quantmod", "amod", "compound", "neg"})
_AUXILIARIES = frozenset({"aux", "auxpass", "amod"})
_CLAUSES = frozenset({"xcomp", "ccomp", "attr", "acomp", "oprd"})
_PLACED = frozenset({"prep", "agent"})


def find_attributes(tree: Tree, number: dict[int, int], count: int) -> list[list[str]]:
    """The attributes of each of the `count` objects, in the order of the caption."""
    found: list[list[str]] = [[] for _ in range(count)]
    for token in range(len(tree)):
        described = bearers(tree, token)
        if described:
            phrase = _adjective(tree, token)
        elif describes_subject(tree, token):
            phrase, described = _participle(tree, token), subjects(tree, token)
        for noun in described:
            if noun in number and phrase not in found[number[noun]]:
                found[number[noun]].append(phrase)
    return found


def bearers(tree: Tree, token: int) -> list[int]:
    """The nouns that `token` describes as an adjective, numeral or participle before the noun."""
    dep, head = tree.deps[token], tree.heads[token]
    if dep in _MODIFIERS:
        return [head] if is_noun(tree, head) else []
    if dep in _PREDICATES and is_verb(tree, head):
        return direct_objects(tree, head) or subjects(tree, head)
    if dep == "conj" and not is_noun(tree, token):
        return bearers(tree, head)
    return []


def _adjective(tree: Tree, token: int) -> str:
    """The adjective with the adverbs before it: "very dark brown"."""
    return _words(tree, [t for t in tree.below(token, _DEGREES) if t < token] + [token])


def describes_subject(tree: Tree, token: int) -> bool:
    """Whether the verb `token` says how its subject is, not what it does to something."""
    if not is_verb(tree, token) or tree.deps[token] in _AUXILIARIES:
        return False
    if tree.lemmas[token] in COPULAS or tree.below(token, _CLAUSES):
        return False
    if is_passive(tree, token):
        return not tree.below(token, {"agent"})
    if direct_objects(tree, token):
        return False
    return tree.lemmas[token] in STATES or not tree.below(token, _PLACED)


def _participle(tree: Tree, verb: int) -> str:
    """The verb as a participle with its particle and adverbs, in the order of the caption."""
    passive = is_passive(tree, verb)
    word = tree.words[verb] if passive else present_participle(tree.lemmas[verb])
    before = [t for t in _adverbs(tree, verb) if t < verb]
    after = [t for t in _adverbs(tree, verb) if t > verb]
    return " ".join([*(tree.words[t] for t in before), word, *(tree.words[t] for t in after)])


def _adverbs(tree: Tree, verb: int) -> list[int]:
    near = tree.below(verb, {"advmod", "prt"})
    return [t for t in near if tree.words[t] not in UNSEEN_ADVERBS and not tree.children[t]]


def _words(tree: Tree, tokens: list[int]) -> str:
    return " ".join(tree.words[token] for token in tokens)
