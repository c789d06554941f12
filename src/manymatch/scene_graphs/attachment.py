"""Repairs of words that the parser attaches to the wrong head, one function per kind of error."""

from manymatch.scene_graphs import lexicon
from manymatch.scene_graphs.objects import measured
from manymatch.scene_graphs.tree import AUXILIARIES, BARE, FINITE, VERBS, Repair, Tree

_CLAUSE_ROLES = {"csubj": "nsubj", "pcomp": "pobj", "pobj": "pobj"}
_FINITE_OR_PAST = FINITE | {"VBD"}
_LISTED = frozenset({"pobj", "dobj", "conj"})
_PICTURES = lexicon.PICTURES | {"close up", "close-up", "closeup"}
_SHOWING = lexicon.LOCATING | lexicon.PREPOSITIONS - {"by", "from", "through"}
_COMPLEMENTS = BARE | {"VBG", "VBN"}
_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "expl"})


def _subject_of_clause(tree: Tree, token: int) -> None:
    """In "the cow standing by the fence is red" the cow is red, not the standing.

    In "with a dog running" the object is the dog, not the running.
    """
    role = _CLAUSE_ROLES.get(tree.deps[token])
    if not role or not tree.is_verb(token):
        return
    if own := tree.below(token, {"nsubj", "nsubjpass"}):
        tree.attach(own[0], tree.heads[token], role)
        tree.attach(token, own[0], "acl")
    elif tree.deps[token] == "pcomp":  # "With a scarf around her head selling bags".
        for noun in tree.below(tree.heads[token], {"pobj"})[:1]:
            tree.attach(token, noun, "acl")


def _complement_describes(tree: Tree, token: int) -> None:
    """In "watch a man dance" and "have a picture taken" the noun is an object with a verb.

    The parser takes a verb in the base form for the verb of the whole caption.
    """
    noun, tag = token - 1, tree.tags[token]
    if tag not in _COMPLEMENTS or tree.below(token, AUXILIARIES) or noun < 0:
        return
    verb = tree.heads[token] if tree.deps[token] == "ccomp" else tree.heads[noun]
    if tree.lemmas[verb] not in lexicon.COMPLEMENTED or not tree.is_verb(verb) or verb > noun:
        return
    if tree.deps[token] == "ccomp":
        for subject in [t for t in tree.below(token, _SUBJECTS) if tree.is_noun(t)]:
            tree.attach(subject, verb, "dobj")
            tree.attach(token, subject, "acl")
    elif tree.deps[noun] == "dobj" and tree.is_noun(noun) and tag in BARE:
        for subject in tree.below(token, {"nsubj"}) if tree.deps[token] == "ROOT" else ():
            tree.attach(subject, subject, "ROOT")
        tree.attach(token, noun, "acl")


def _inverted_subject(tree: Tree, token: int) -> None:
    """In "behind the house stands a tree" the tree stands."""
    if tree.tags[token] not in _FINITE_OR_PAST or tree.below(token, _SUBJECTS):
        return
    objects = tree.below(token, {"dobj"})
    if objects and any(child < token for child in tree.below(token, {"prep"})):
        tree.deps[objects[0]] = "nsubj"


def _subject_before_verb(tree: Tree, token: int) -> None:
    """In "... over a box and a bag is ..." the bag is the subject of the verb directly after it."""
    if not tree.is_verb(token) or tree.below(token, _SUBJECTS) or tree.deps[token] == "aux":
        return
    start = min([token, *tree.below(token, AUXILIARIES)])
    noun = start - 1
    if noun < 0 or tree.deps[noun] != "conj" or not tree.is_noun(noun):
        return
    if tree.lemmas[noun] in lexicon.WORN:
        return
    first = next(t for t in tree.above(noun) if tree.deps[t] != "conj")
    if tree.tags[start] in _FINITE_OR_PAST and tree.deps[first] != "ROOT":
        if noun in tree.above(token):
            clause = next((t for t in tree.above(noun) if tree.is_verb(t)), tree.root(noun))
            tree.attach(token, clause, "conj")
        tree.attach(noun, token, "nsubj")


def _subjects_joined(tree: Tree, token: int) -> None:
    """In "a man with a beard and a woman are smiling" the parser sees two subjects.

    In "a man, a woman and a child sit" the parser sees two, too.
    """
    pair = tree.below(token, {"nsubj"})
    if len(pair) != 2:
        return
    joint = tree.words[tree.start(pair[1]) - 1]
    if joint == "and" or (joint == "," and tree.below(pair[1], {"conj"})):
        tree.attach(pair[1], pair[0], "conj")


def _clothes_do_not_act(tree: Tree, token: int) -> None:
    """In "a man in shorts and a hat stands" the man stands, and not the hat."""
    if tree.deps[token] != "nsubj" or tree.lemmas[token] not in lexicon.WORN:
        return
    clothes = [
        t for t in range(token) if tree.deps[t] in _LISTED and tree.lemmas[t] in lexicon.WORN
    ]
    if clothes and any(t < clothes[-1] for t in tree.below(tree.heads[token], {"nsubj"})):
        tree.attach(token, clothes[-1], "conj")


def _list_goes_on(tree: Tree, token: int) -> None:
    """In "a beach with a hat, a cat and a man" the cat follows the hat, not the beach.

    In "a man, a woman and a child on a bench" the woman does not explain the man.
    """
    head, dep = tree.heads[token], tree.deps[token]
    if dep == "appos":
        goes_on = bool(tree.below(token, {"conj"}))
    else:  # Nouns after a place are not joined to the place, nor clothes to their wearer.
        worn = tree.lemmas[token] in lexicon.WORN and tree.lemmas[head] not in lexicon.WORN
        goes_on = dep == "conj" and (worn or tree.lemmas[head] in lexicon.PLACES)
    if not goes_on:
        return
    before = next((t for t in range(token - 1, head, -1) if tree.deps[t] in _LISTED), head)
    if tree.is_noun(before) and (before != head or dep == "appos"):
        tree.attach(token, before, "conj")


def _object_of_preposition(tree: Tree, token: int) -> None:
    """In "flying over a cat" the cat belongs to "over", even if the parser makes it an object."""
    if tree.heads[token] == token:
        return
    verb = tree.heads[token]
    particle = tree.deps[token] == "prt"
    own = tree.below(token, {"pobj"})
    placed = any(tree.lemmas[noun] in lexicon.PLACES for noun in own)  # "Throwing in the park".
    if particle and tree.lemmas[verb] in lexicon.TAKING and not placed:
        for noun in own:
            tree.attach(noun, verb, "dobj")
        return
    if own:
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
    if noun < 0 or not tree.is_noun(noun):
        return
    if tree.deps[token] in {"nsubj", "mark"} and set(tree.below(verb, {"nsubj"})) - {token}:
        tree.deps[token] = "dobj"
    if tree.is_verb(verb) and tree.deps[verb] in {"ccomp", "acl", "advcl"}:
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
        elif before == verb + 1 and tree.words[before] in lexicon.PREPOSITIONS:
            tree.attach(before, verb, "prep")
            tree.attach(noun, before, "pobj")
        else:
            continue
        tree.attach(token, tree.heads[verb], "acl")


def _adverbial_object(tree: Tree, token: int) -> None:
    """In "a cow chases a boy" the boy is not an adverb."""
    verb = tree.heads[token]
    if tree.deps[token] != "npadvmod" or not tree.is_verb(verb) or token < verb:
        return
    thing = tree.tags[token] == "NNP" or tree.below(token, {"det", "poss"})
    if thing and tree.lemmas[token] not in lexicon.MOMENTS and not tree.below(verb, {"dobj"}):
        tree.deps[token] = "dobj"


def _agent(tree: Tree, token: int) -> None:
    """In "a cart dragged by a horse" the horse drags; in "parked by a house" the house does not."""
    verb = tree.heads[token]
    if tree.tags[verb] == "VBG" and tree.deps[token] == "agent":
        tree.deps[token] = "prep"  # "Standing by a table".
    if token != verb + 1 or tree.tags[verb] not in {"VBD", "VBN"}:
        return
    reduced = not tree.below(verb, {"auxpass"})
    if tree.lemmas[verb] in lexicon.RESTING or (reduced and tree.lemmas[verb] in lexicon.MOVING):
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


def _attach_of(tree: Tree, token: int) -> None:
    """In "a lady and a group of girls" the girls are a group, not a lady."""
    noun = token - 1
    if noun >= 0 and tree.is_noun(noun):
        tree.attach(token, noun, "prep")


def _picture_shows(tree: Tree, token: int) -> None:
    """In "a picture of a cup and a plate on a table" the plate is shown, and on the table."""
    of = [link for link in tree.below(token, {"prep"}) if tree.words[link] in {"into", "of"}]
    shown = next((noun for link in of for noun in tree.below(link, {"pobj"})), None)
    if shown is None or not tree.is_noun(token):
        return
    for child in [t for t in tree.children[token] if t > shown]:
        noun = child - 1
        if tree.deps[child] == "conj" and tree.is_noun(child):
            tree.attach(child, shown, "conj")
        elif tree.words[child] in _SHOWING and shown in (noun, *tree.above(noun)):
            if any(tree.lemmas[time] in lexicon.MOMENTS for time in tree.below(child, {"pobj"})):
                continue
            near = tree.is_noun(noun) and tree.lemmas[noun] not in lexicon.SETTINGS
            tree.attach(child, noun if near else shown, "prep")


def _not_belongs_to_next(tree: Tree, token: int) -> None:
    """In "a not so happy dog" and "a boy, not a girl" the word after "not" is denied."""
    head = tree.heads[token]
    if tree.is_noun(head):
        roles = {"amod"} if head > token else {"appos", "conj"}
        for other in [t for t in tree.below(head, roles) if t > token][:1]:
            tree.attach(token, other, "neg")


ATTACHMENTS: tuple[Repair, ...] = (
    Repair(_attach_of, {"of"}),
    Repair(_picture_shows, _PICTURES),
    Repair(_subject_of_clause, tags=VERBS),
    Repair(_complement_describes, tags=_COMPLEMENTS),
    Repair(_inverted_subject, tags=_FINITE_OR_PAST),
    Repair(_subject_before_verb, tags=VERBS),
    Repair(_subjects_joined),
    Repair(_clothes_do_not_act),
    Repair(_list_goes_on),
    Repair(_object_of_preposition, lexicon.PREPOSITIONS),
    Repair(_relative_clause, lexicon.RELATIVES),
    Repair(_object_taken_for_subject),
    Repair(_adverbial_object),
    Repair(_agent, {"by"}),
    Repair(_measured_list),
    Repair(_not_belongs_to_next, {"not"}),
)
