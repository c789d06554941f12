"""Who does what to whom: the arguments of verbs and prepositions, through the grammar's detours.

Conjunctions, relative clauses, participles, infinitives and the passive all move a verb's
arguments away from it; these functions find them again. Arguments and results are tokens.
"""

from __future__ import annotations

from manymatch.scene_graphs.lexicon import RELATIVES
from manymatch.scene_graphs.tree import Tree

_CLAUSES = frozenset({"relcl", "acl"})
_COORDINATES = frozenset({"conj", "appos"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj"})
_SHOWN = frozenset({"attr", "dobj"})
_BORROWING = frozenset({"conj", "advcl", "xcomp", "ccomp", "pcomp", "dep", "parataxis"})
_PASSIVE_MARKS = frozenset({"auxpass", "nsubjpass", "agent"})
_ACTIVE_MARKS = frozenset({"aux", "dobj", "nsubj"})


def is_verb(tree: Tree, token: int) -> bool:
    return tree.tags[token].startswith("VB")


def is_noun(tree: Tree, token: int) -> bool:
    return tree.tags[token].startswith("NN")


def coordinated(tree: Tree, token: int) -> list[int]:
    """`token` and what is joined to it: "a cup, a plate and a fork" from "cup"."""
    found = [token]
    for one in found:  # Grows while it is read: each joined noun may have others joined to it.
        found += [t for t in tree.below(one, _COORDINATES) if not is_verb(tree, t)]
    return found


def antecedent(tree: Tree, token: int) -> int | None:
    """The noun that the relative clause around `token` describes, if there is one."""
    for ancestor in (token, *tree.above(token)):
        if tree.deps[ancestor] in _CLAUSES:
            return tree.heads[ancestor]
    return None


def nouns(tree: Tree, tokens: list[int]) -> list[int]:
    """`tokens` with their coordinates, relative pronouns replaced by what they stand for."""
    found: list[int] = []
    for token in tokens:
        if tree.words[token] in RELATIVES:
            noun = antecedent(tree, token)
            found += [] if noun is None else [noun]
        else:
            found += coordinated(tree, token)
    return found


def is_passive(tree: Tree, verb: int) -> bool:
    """Whether the action is done to the verb's subject ("held by", "is held", "dressed")."""
    while tree.tags[verb] == "VBN":
        if tree.below(verb, _PASSIVE_MARKS):
            return True
        if tree.below(verb, _ACTIVE_MARKS):
            return False
        if tree.deps[verb] != "conj":
            return True
        verb = tree.heads[verb]
    return False


def subjects(tree: Tree, verb: int) -> list[int]:
    """The nouns that the verb is said of; from the governing clause if it has none itself."""
    while not (found := _own_subjects(tree, verb)):
        dep, head = tree.deps[verb], tree.heads[verb]
        if dep == "pcomp":  # "... after jumping": the preposition hangs on the other verb.
            head = tree.heads[head]
        if head == verb or not (is_verb(tree, head) and dep in _BORROWING):
            return [head] if is_noun(tree, head) else []
        verb = head
    return nouns(tree, found)


def _own_subjects(tree: Tree, verb: int) -> list[int]:
    own = tree.below(verb, _SUBJECTS)[-1:]  # Of two, the parser put the first in the wrong clause.
    if not own and tree.lemmas[verb] == "be":
        return tree.below(verb, _SHOWN)  # "There is a dog", "On the table is a cup".
    return own


def direct_objects(tree: Tree, verb: int) -> list[int]:
    """What the verb acts on, with the antecedent of "the ball (that) the man holds"."""
    found = nouns(tree, tree.below(verb, {"dobj", "dative"}))
    if found or tree.deps[verb] not in _CLAUSES or not tree.below(verb, {"nsubj"}):
        return found
    return [tree.heads[verb]] if _lacks_object(tree, verb) else []


def _lacks_object(tree: Tree, verb: int) -> bool:
    """Whether a relative clause with its own subject describes the object of its verb."""
    if any(tree.words[token] in RELATIVES for token in tree.children[verb]):
        return False
    return not tree.below(verb, {"advmod", "prep", "acomp", "attr", "xcomp", "ccomp"})


def complements(tree: Tree, preposition: int) -> list[int]:
    """The nouns after a preposition; those of its coordinate in "on and under the table"."""
    own = tree.below(preposition, {"pobj"})
    if own:
        return nouns(tree, own)
    for other in tree.below(preposition, {"conj"}):
        return complements(tree, other)
    return _stranded(tree, preposition)


def _stranded(tree: Tree, preposition: int) -> list[int]:
    """The antecedent that a relative clause leaves out: "the log (that) the dog jumps over"."""
    head = tree.heads[preposition]
    if (
        tree.deps[head] == "relcl"
        and tree.below(head, {"nsubj"})
        and not tree.children[preposition]
    ):
        return [tree.heads[head]]
    return []
