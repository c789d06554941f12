"""What a caption denies: "not wearing a hat", "neither black nor white", "without looking"."""

from __future__ import annotations

from manymatch.scene_graphs.clauses import is_noun, is_verb
from manymatch.scene_graphs.tree import Tree

_NOT = frozenset({"not", "n't", "nt", "never"})
_EITHER = frozenset({"neither", "nor"})
_AVOIDING = {"without": ["actually", "ever", "even"], "instead": ["of"], "rather": ["than"]}
"""Words that deny a participle, and the words that may stand between."""
_FAILING = frozenset({"fail", "forget", "refuse", "unable"})
_DENIALS = _NOT | _EITHER | _AVOIDING.keys() | _FAILING | {"longer"}
_MUCH = frozenset({"all", "every", "many", "much"})
_ONLY = frozenset({"only", "just"})
_TAKEN_ALONG = frozenset({"prep", "agent", "prt", "advmod", "acomp", "oprd", "xcomp", "ccomp"})
_ARGUMENTS = frozenset({"nsubj", "nsubjpass", "dobj", "pobj", "attr"})


def find_denied(tree: Tree) -> set[int]:
    """Return the verbs, prepositions, predicates and nouns that the caption denies.

    They make no attribute and no relation, because the graph would state the opposite.
    """
    denied: set[int] = set()
    if _DENIALS.isdisjoint(tree.words) and _FAILING.isdisjoint(tree.lemmas):
        return denied
    for token, word in enumerate(tree.words):
        for other in _denied_by(tree, token, word):
            _deny(tree, other, denied)
    return denied


def _denied_by(tree: Tree, token: int, word: str) -> list[int]:
    head, after = tree.heads[token], "".join(tree.words[token + 1 : token + 2])
    if word in _NOT:
        if after in _ONLY or tree.deps[head] == "amod":
            return []  # "A not so happy dog" has the attribute "not so happy".
        return [head, token + 1] if after in _MUCH else [head]
    if word == "longer":
        return [head] if token and tree.words[token - 1] == "no" else []
    if word == "neither":
        return [tree.heads[head] if tree.deps[head] in _ARGUMENTS else head]
    if word == "nor":
        return [t for t in tree.below(head, {"conj"}) if t > token and not is_noun(tree, t)]
    if word in _AVOIDING:
        verb = token + 1 + (after in _AVOIDING[word])
        return [verb] if tree.tags[verb : verb + 1] == ["VBG"] else []
    if tree.lemmas[token] in _FAILING:
        return tree.below(token, {"xcomp"})
    return []


def _deny(tree: Tree, token: int, denied: set[int]) -> None:
    """Add `token` and what belongs to it: its prepositions, complements and alternatives."""
    if token in denied:
        return
    denied.add(token)
    joint = ""
    for child in tree.children[token]:
        dep = tree.deps[child]
        if dep == "cc":
            joint = tree.words[child]
        elif dep in _TAKEN_ALONG:
            _deny(tree, child, denied)
        elif dep == "conj":  # "Not black but white", "not smiling and looking at a dog".
            if joint in {"or", "nor"} or (joint == "and" and not is_verb(tree, child)):
                _deny(tree, child, denied)
        elif dep in {"dobj", "attr"}:  # "Not wearing a hat on his head".
            for link in tree.below(child, {"prep"}):
                _deny(tree, link, denied)
