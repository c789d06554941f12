"""Repairs of words that the parser attaches to the wrong head, one function per kind of error."""

from __future__ import annotations

from manymatch.scene_graphs.clauses import is_noun, is_verb
from manymatch.scene_graphs.lexicon import (
    COVERING,
    MOMENTS,
    MOVING,
    PLACES,
    PREPOSITIONS,
    RELATIVES,
    RESTING,
    WORN,
)
from manymatch.scene_graphs.objects import measured
from manymatch.scene_graphs.tree import Tree

_CLAUSES = frozenset({"relcl", "acl"})
_CLAUSE_ROLES = {"csubj": "nsubj", "pcomp": "pobj", "pobj": "pobj"}
_FINITE = frozenset({"VBZ", "VBP", "VBD"})
_LISTED = frozenset({"pobj", "dobj", "conj"})
_MISTAKEN_CLAUSES = frozenset({"ccomp", "acl", "advcl"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "expl"})
_AUXILIARIES = frozenset({"aux", "auxpass"})


def _subject_of_clause(tree: Tree, token: int) -> None:
    """In "the cow standing by the fence is red" the cow is red, not the standing.

    In "with a dog running" the object is the dog, not the running.
    """
    role = _CLAUSE_ROLES.get(tree.deps[token])
    if role and is_verb(tree, token) and (own := tree.below(token, {"nsubj"})):
        tree.attach(own[0], tree.heads[token], role)
        tree.attach(token, own[0], "acl")


def _inverted_subject(tree: Tree, token: int) -> None:
    """In "behind the house stands a tree" the tree stands."""
    if tree.tags[token] not in _FINITE or tree.below(token, _SUBJECTS):
        return
    objects = tree.below(token, {"dobj"})
    if objects and any(child < token for child in tree.below(token, {"prep"})):
        tree.deps[objects[0]] = "nsubj"


def _subject_before_verb(tree: Tree, token: int) -> None:
    """In "... over a box and a bag is ..." the bag is the subject of the verb directly after it."""
    if not is_verb(tree, token) or tree.below(token, _SUBJECTS) or tree.deps[token] == "aux":
        return
    start = min([token, *tree.below(token, _AUXILIARIES)])
    noun = start - 1
    if noun < 0 or tree.deps[noun] != "conj" or not is_noun(tree, noun):
        return
    first = next(t for t in tree.above(noun) if tree.deps[t] != "conj")
    if tree.tags[start] in _FINITE and tree.deps[first] != "ROOT":
        _detach(tree, token, noun)
        tree.attach(noun, token, "nsubj")


def _detach(tree: Tree, verb: int, noun: int) -> None:
    """Attach `verb` to the clause of `noun`, if the verb is attached to the noun."""
    if noun in tree.above(verb):
        clause = next((t for t in tree.above(noun) if is_verb(tree, t)), tree.root(noun))
        tree.attach(verb, clause, "conj")


def _list_goes_on(tree: Tree, token: int) -> None:
    """In "a beach with a hat, a cat and a man" the cat follows the hat, not the beach."""
    head, dep = tree.heads[token], tree.deps[token]
    if dep == "appos":
        goes_on = bool(tree.below(token, {"conj"}))
    else:  # Nouns after a place are not joined to the place, nor clothes to their wearer.
        worn = tree.lemmas[token] in WORN and tree.lemmas[head] not in WORN
        goes_on = dep == "conj" and (worn or tree.lemmas[head] in PLACES)
    if not goes_on:
        return
    before = next((t for t in range(token - 1, head, -1) if tree.deps[t] in _LISTED), head)
    if before != head and is_noun(tree, before):
        tree.attach(token, before, "conj")


def _object_of_preposition(tree: Tree, token: int) -> None:
    """In "flying over a cat" the cat belongs to "over", even if the parser makes it an object."""
    if tree.words[token] not in PREPOSITIONS or tree.heads[token] == token:
        return
    if tree.below(token, {"pobj"}):
        tree.deps[token] = "prep" if tree.deps[token] == "prt" else tree.deps[token]
        return
    verb = tree.heads[token]
    inverted = {"nsubj"} if tree.below(verb, {"attr"}) else set()
    for noun in tree.below(verb, {"dobj", "npadvmod"} | inverted):
        if tree.start(noun) == token + 1:
            tree.attach(noun, token, "pobj")
            tree.deps[token] = "prep"


def _relative_clause(tree: Tree, token: int) -> None:
    """In "there is a ball that a child holds" the clause describes the ball before "that"."""
    noun, verb = token - 1, tree.heads[token]
    if tree.words[token] not in RELATIVES or noun < 0 or not is_noun(tree, noun):
        return
    if tree.deps[token] in {"nsubj", "mark"} and set(tree.below(verb, {"nsubj"})) - {token}:
        tree.deps[token] = "dobj"
    if is_verb(tree, verb) and tree.deps[verb] in _MISTAKEN_CLAUSES:
        tree.attach(verb, noun, "relcl")


def _object_taken_for_subject(tree: Tree, token: int) -> None:
    """In "a cat which wears a hat is small" the hat is worn, and the cat is small."""
    verb = tree.heads[token]
    if tree.deps[token] not in {"ccomp", "advcl"} or tree.deps[verb] != "relcl":
        return
    for noun in tree.below(token, {"nsubj"}):
        before = tree.start(noun) - 1
        if before == verb:
            tree.attach(noun, verb, "dobj")
        elif before == verb + 1 and tree.words[before] in PREPOSITIONS:
            tree.attach(before, verb, "prep")
            tree.attach(noun, before, "pobj")
        else:
            continue
        tree.attach(token, tree.heads[verb], "acl")


def _adverbial_object(tree: Tree, token: int) -> None:
    """In "a cow chases a boy" the boy is not an adverb."""
    verb = tree.heads[token]
    if tree.deps[token] != "npadvmod" or not is_verb(tree, verb) or token < verb:
        return
    determined = tree.below(token, {"det", "poss"})
    if determined and tree.lemmas[token] not in MOMENTS and not tree.below(verb, {"dobj"}):
        tree.deps[token] = "dobj"


def _agent(tree: Tree, token: int) -> None:
    """In "a cart dragged by a horse" the horse drags; in "parked by a house" the house does not."""
    verb = tree.heads[token]
    if tree.words[token] != "by" or token != verb + 1 or tree.tags[verb] not in {"VBD", "VBN"}:
        return
    reduced = not tree.below(verb, {"auxpass"})
    if tree.lemmas[verb] in RESTING or (reduced and tree.lemmas[verb] in MOVING):
        tree.deps[token] = "prep"
        return
    tree.tags[verb], tree.deps[token] = "VBN", "agent"
    for subject in tree.below(verb, {"nsubj"}):
        tree.deps[subject] = "nsubjpass"


def _measured_list(tree: Tree, token: int) -> None:
    """In "a bunch of trees and a house" the house is joined to the bunch, not to the trees."""
    inner = measured(tree, token)
    if inner is not None:
        for other in tree.below(inner, {"conj"}):
            tree.attach(other, token, "conj")


def _wearer_acts(tree: Tree, token: int) -> None:
    """In "a man in a red shirt holding a ball" the man holds the ball, not the shirt."""
    if tree.deps[token] not in _CLAUSES or tree.lemmas[token] in COVERING:
        return
    clothing = tree.heads[token]
    while tree.deps[clothing] == "conj" and tree.lemmas[tree.heads[clothing]] in WORN:
        clothing = tree.heads[clothing]
    wearer = _wearer(tree, clothing) if tree.lemmas[clothing] in WORN else None
    if wearer is not None and tree.tags[token] == "VBG":
        tree.attach(token, wearer, "acl")


def _wearer(tree: Tree, clothing: int) -> int | None:
    """Return the noun before "in", "with" or "wearing" and the `clothing`, or None."""
    link = tree.heads[clothing]
    if tree.deps[clothing] == "pobj" and tree.words[link] in {"in", "with"}:
        link = tree.heads[link]
    while is_verb(tree, link) and tree.deps[link] in _CLAUSES:
        link = tree.heads[link]
    return link if is_noun(tree, link) else None


ATTACHMENTS = (
    _subject_of_clause,
    _inverted_subject,
    _subject_before_verb,
    _list_goes_on,
    _object_of_preposition,
    _relative_clause,
    _object_taken_for_subject,
    _adverbial_object,
    _agent,
    _measured_list,
    _wearer_acts,
)
