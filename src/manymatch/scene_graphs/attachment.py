"""Repairs of words that the parser attaches to the wrong head, one function per kind of error."""

from __future__ import annotations

from manymatch.scene_graphs.clauses import is_animate, is_noun, is_verb, possessed
from manymatch.scene_graphs.lexicon import (
    BODY,
    COVERING,
    LOCATING,
    MOMENTS,
    MOVING,
    PLACES,
    PREPOSITIONS,
    RELATIVES,
    RESTING,
    SETTINGS,
    TAKING,
    VEHICLES,
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
    if tree.lemmas[noun] in WORN:
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
    if dep == "nsubj" and tree.lemmas[token] in WORN:
        # In "a man in shorts and a hat stands" the man stands, and not the hat.
        worn = [t for t in range(token) if tree.deps[t] == "pobj" and tree.lemmas[t] in WORN]
        if worn and any(t < worn[-1] for t in tree.below(head, {"nsubj"})):
            tree.attach(token, worn[-1], "conj")
        return
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
    verb = tree.heads[token]
    particle = tree.deps[token] == "prt"
    if particle and tree.lemmas[verb] in TAKING:
        for noun in tree.below(token, {"pobj"}):
            tree.attach(noun, verb, "dobj")
        return
    if tree.below(token, {"pobj"}):
        tree.deps[token] = "prep" if particle else tree.deps[token]
        return
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
    thing = tree.tags[token] == "NNP" or tree.below(token, {"det", "poss"})
    if thing and tree.lemmas[token] not in MOMENTS and not tree.below(verb, {"dobj"}):
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


def _worn_by_nearest(tree: Tree, token: int) -> None:
    """In "looking at a woman in a dress" the woman is in the dress; so for "sheep with horns"."""
    if tree.words[token] not in {"in", "with"} or not is_verb(tree, tree.heads[token]):
        return
    worn = tree.below(token, {"pobj"})
    nearest = token - 2 if token > 1 and tree.words[token - 1] == "," else token - 1
    if not worn or not is_noun(tree, nearest):
        return
    lemma = tree.lemmas[worn[0]]
    if lemma in WORN and tree.lemmas[nearest] in WORN:
        wearer = _wearer(tree, nearest)
    elif (lemma in WORN or (lemma in BODY and tree.words[token] == "with")) and is_animate(
        tree, nearest
    ):
        wearer = nearest
    else:
        return
    if wearer is not None:
        tree.attach(token, wearer, "prep")


def _actor_acts(tree: Tree, token: int) -> None:
    """In "a man in a red shirt holding a ball" the man holds the ball, not the shirt."""
    if tree.deps[token] not in _CLAUSES or tree.lemmas[token] in COVERING:
        return
    noun = tree.heads[token]
    if tree.tags[token] != "VBG" or tree.lemmas[noun] in VEHICLES or is_animate(tree, noun):
        return
    clothing = noun
    while tree.deps[clothing] == "conj" and tree.lemmas[tree.heads[clothing]] in WORN:
        clothing = tree.heads[clothing]
    actor = _wearer(tree, clothing) if tree.lemmas[clothing] in WORN else None
    link = tree.heads[noun] if tree.deps[noun] == "pobj" else noun
    absolute = tree.words[link] == "with" and tree.below(noun, {"det"})  # "With the sun shining".
    if actor is None and (not absolute or tree.below(token, {"dobj"})):
        actor = next((t for t in tree.above(noun) if is_animate(tree, t)), None)
        if actor is None and tree.words[link] in {"in", "on", "at"}:
            actor = tree.heads[link] if is_noun(tree, tree.heads[link]) else None
    if actor is not None:
        tree.attach(token, actor, "acl")
        return
    verb = _verb_above(tree, noun)
    if verb is None or absolute:
        return
    if any(is_animate(tree, t) for t in tree.below(verb, _SUBJECTS)):
        tree.attach(token, verb, "advcl")


def _verb_above(tree: Tree, token: int) -> int | None:
    return next((t for t in tree.above(token) if is_verb(tree, t)), None)


def _wearer(tree: Tree, clothing: int) -> int | None:
    """Return the noun before "in", "with" or "wearing" and the `clothing`, or None."""
    link = tree.heads[clothing]
    if tree.deps[clothing] == "pobj" and tree.words[link] in {"in", "with"}:
        link = tree.heads[link]
    while is_verb(tree, link) and tree.deps[link] in _CLAUSES:
        link = tree.heads[link]
    return link if is_noun(tree, link) else None


def _of_follows_noun(tree: Tree, token: int) -> None:
    """In "a lady and a group of girls" the girls are a group, not a lady."""
    noun = token - 1
    if tree.words[token] == "of" and noun >= 0 and is_noun(tree, noun):
        tree.attach(token, noun, "prep")


def _with_itself(tree: Tree, token: int) -> None:
    """Attach "with", as one of three phrases says where it belongs.

    "A vest with crosses on it": the noun before. "... with her hand in a bag", "... with people in
    the background": the verb, and the second phrase to the noun, as in "with a tear on her face".
    """
    if tree.words[token] != "with" or not (own := tree.below(token, {"pobj"})):
        return
    verb, noun = _verb_above(tree, token), own[0]
    after = [noun + 1] if "".join(tree.words[noun + 1 : noun + 2]) in {"in", "on"} else []
    places = [t for link in after for t in tree.below(link, {"pobj"})]
    if any(tree.words[t] in {"it", "them"} for t in places) and is_noun(tree, token - 1):
        tree.attach(token, token - 1, "prep")
    elif verb is not None and any(tree.lemmas[t] in SETTINGS for t in places):
        tree.attach(token, verb, "prep")
    elif possessed(tree, noun) and not is_animate(tree, noun):
        if verb is not None and tree.deps[tree.heads[token]] == "pobj":
            tree.attach(token, verb, "prep")
        for link in after:
            if not any(tree.lemmas[t] in PLACES for t in places):
                tree.attach(link, noun, "prep")
    elif any(possessed(tree, t) for t in places) and not is_animate(tree, noun):
        tree.attach(noun + 1, noun, "prep")


def _wearer_is_there(tree: Tree, token: int) -> None:
    """In "a child in a yellow shirt on a bed" the child is on the bed, not the shirt."""
    clothing = tree.heads[token]
    if tree.words[token] not in LOCATING or tree.lemmas[clothing] not in WORN:
        return
    if any(possessed(tree, noun) for noun in tree.below(token, {"pobj"})):
        return  # "On his head".
    link = tree.heads[clothing]
    worn = tree.deps[clothing] == "pobj" and tree.words[link] == "in"
    if worn and is_animate(tree, tree.heads[link]):
        tree.attach(token, tree.heads[link], "prep")


def _for_to(tree: Tree, token: int) -> None:
    """In "waits for a girl to open a door" one waits for the girl, who opens the door."""
    verb = tree.heads[token]
    if tree.words[token] != "for" or tree.deps[token] != "mark" or tree.deps[verb] != "advcl":
        return
    for noun in tree.below(verb, {"nsubj"}):
        tree.attach(token, tree.heads[verb], "prep")
        tree.attach(noun, token, "pobj")
        tree.attach(verb, noun, "acl")


ATTACHMENTS = (
    _of_follows_noun,
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
    _worn_by_nearest,
    _with_itself,
    _wearer_is_there,
    _actor_acts,
    _for_to,
)
