"""Repairs of wrong tags, one function per kind of error."""

from __future__ import annotations

from manymatch.scene_graphs.clauses import is_animate, is_noun, is_verb
from manymatch.scene_graphs.inflection import participle_base, present_participle, verb_base
from manymatch.scene_graphs.lexicon import (
    ANIMALS,
    BODY,
    COLOURS,
    DENOMINAL,
    GEAR,
    INTRANSITIVES,
    PLACES,
    PLURALS,
    QUANTITIES,
    SHADES,
    STATES,
    WORN,
)
from manymatch.scene_graphs.objects import measured
from manymatch.scene_graphs.tree import Repair, Tree

_AROUND_VERBS = frozenset({"prep", "advmod", "prt", "punct", "dobj"})
_BEFORE_NOUN = frozenset({"compound", "nmod"})
_FINITE = frozenset({"VBZ", "VBP"})
_WORN_OR_BODY = WORN | BODY
_BEFORE_PARTICIPLE = _BEFORE_NOUN | {"npadvmod"}
_BEFORE_HEAD = frozenset({"amod", "aux", "compound", "det", "nmod", "nummod", "poss"})
_ADVERBIAL = frozenset({"amod", "advmod", "npadvmod", "compound", "nmod"})
_CLAUSE_HEADS = frozenset({"ROOT", "advcl", "ccomp", "conj", "relcl"})
_JOINED = frozenset({"conj", "acl"})
_DETERMINERS = frozenset({"det", "nummod"})
_DESCRIBING = frozenset({"JJ", "JJR", "JJS", "VBG", "VBN"})
_STATE_PARTICIPLES = frozenset(map(present_participle, STATES))
_MOVING_PARTICIPLES = frozenset(map(present_participle, INTRANSITIVES | {"play"}))


def _verb_has_base(tree: Tree, token: int) -> None:
    word, lemma = tree.words[token], tree.lemmas[token]
    if tree.tags[token] == "VBG" and lemma == word:  # The lemmatiser does not know the verb.
        tree.lemmas[token] = participle_base(word)
    elif is_verb(tree, token):
        tree.lemmas[token] = verb_base(word, lemma)


def _noun_is_verb(tree: Tree, token: int) -> None:
    """In "a girl bikes on a path" bikes is a verb, but the parser sees a compound noun."""
    subject = token - 1
    if subject not in tree.below(token, {"compound"}) or not _may_be_verb(tree, token):
        return
    for child in tree.children[token]:
        if child < subject:
            tree.attach(child, subject, tree.deps[child])
    if tree.deps[token] in {"pobj", "dobj"}:  # The noun's role; the verb joins the root.
        root = tree.root(token)
        tree.attach(subject, tree.heads[token], tree.deps[token])
        tree.attach(token, root, "conj" if is_verb(tree, root) else "acl")
        if token + 1 < len(tree) and tree.deps[token + 1] == "prep":
            tree.attach(token + 1, token, "prep")
    else:
        tree.attach(subject, token, "nsubj")
    for child in tree.below(token, {"appos"}):
        tree.deps[child] = "dobj"
    tree.tags[token] = "VBZ"


def _may_be_verb(tree: Tree, token: int) -> bool:
    """Return whether `token` agrees with the noun before it as its verb."""
    tag = tree.tags[token]
    if tag in {"VBZ", "VBP"} or tree.kinds[token] == "VB":
        return True
    if tag == "NNS" and any(tree.words[t] in {"a", "an"} for t in tree.below(token, {"det"})):
        return True  # "A girl bikes": no plural follows "a".
    if tree.kinds[token] == "NN" or "VB" not in tree.kinds[token]:
        return False
    plural = tag == "NNS" or tree.tags[token - 1] == "NNS"
    if plural and tree.lemmas[token - 1] in _WORN_OR_BODY and tree.lemmas[token] not in WORN:
        # "A girl with tears on her face cries": the caption has no verb before.
        return not any(other in _FINITE for other in tree.tags[:token])
    if tree.deps[token] != "ROOT" or tag not in {"NN", "NNS"}:
        return False
    if tag == "NNS":  # "Person canoes in a lake".
        acts = is_animate(tree, token - 1) and not tree.below(token, {"nummod"})
        return acts and not any(other in _FINITE for other in tree.tags)
    # "Three dogs sleep", "a couple dance": no singular follows "three", and a group may act.
    if tree.lemmas[token - 1] in QUANTITIES and is_animate(tree, token - 1):
        return True
    return tree.tags[token - 1] == "NNS" and bool(tree.below(token, {"nummod"}))


def _clause_has_verb(tree: Tree, token: int) -> None:
    """In "four men ski on a hill" a root or clause with a subject is a verb, whatever its tag."""
    if is_verb(tree, token) or tree.deps[token] not in _CLAUSE_HEADS:
        return
    if "VB" in tree.kinds[token] or (tree.deps[token] == "ROOT" and len(tree.kinds[token]) != 2):
        subject = tree.below(token, {"nsubj"})
        if subject and subject[-1] < token and not tree.below(token, _BEFORE_HEAD):
            tree.tags[token] = "VBP"


def _joined_noun_is_verb(tree: Tree, token: int) -> None:
    """In "a boy runs and jumps" and "is running and jumping" both words are verbs."""
    if not is_noun(tree, token) or tree.deps[token] not in _JOINED:
        return
    head, word = tree.heads[token], tree.words[token]
    bare = all(tree.deps[child] in _AROUND_VERBS for child in tree.children[token])
    if not bare or head > token:
        return
    if tree.tags[token] == "NNS" and tree.deps[token] == "conj" and tree.tags[head] == "VBZ":
        tree.tags[token] = "VBZ"
    elif word.endswith("ing") and (tree.tags[head] == "VBG" or tree.deps[token] == "acl"):
        tree.tags[token], tree.lemmas[token] = "VBG", participle_base(word)


def _state_describes(tree: Tree, token: int) -> None:
    """A "standing horse" is not a compound, but a "swimming pool" is."""
    if tree.deps[token] in _BEFORE_NOUN and tree.lemmas[tree.heads[token]] not in GEAR:
        tree.tags[token], tree.deps[token] = "VBG", "amod"


def _adjective_describes(tree: Tree, token: int) -> None:
    """An adjective or participle before a noun is not part of a compound.

    Nor is a word with a hyphen, unless it is a garment ("t-shirt vendor").
    """
    hyphenated = "-" in tree.words[token] and tree.lemmas[token] not in WORN
    adjective = tree.tags[token] in _DESCRIBING or tree.kinds[token] == "JJ" or hyphenated
    if tree.deps[token] in _BEFORE_NOUN and adjective:
        tree.deps[token] = "amod"
    elif tree.tags[token] == "JJ" and tree.deps[token] == "advmod":
        after_noun = is_noun(tree, tree.heads[token])  # "A goalie ready to block".
        tree.deps[token] = "amod" if after_noun else "advmod"


def _colour_describes(tree: Tree, token: int) -> None:
    """A colour before a noun or joined to an adjective is an adjective, whatever its tag."""
    coloured = tree.words[token] in COLOURS or tree.words[token].endswith(("color", "colour"))
    if not coloured or tree.tags[token].startswith("JJ"):
        return
    dep, head = tree.deps[token], tree.heads[token]
    if dep in _BEFORE_NOUN or (dep == "conj" and tree.tags[head].startswith("JJ")):
        tree.tags[token] = "JJ"
        tree.deps[token] = "conj" if dep == "conj" else "amod"
        for child in tree.below(token, _BEFORE_NOUN):
            tree.deps[child] = "amod"


def _determined_word_is_noun(tree: Tree, token: int) -> None:
    """A word with article or numeral is a noun, even if it looks like a verb ("a building")."""
    if is_verb(tree, token) and tree.below(token, _DETERMINERS):
        if tree.tags[token] != "VBZ":  # "Three blonds" has the lemma of "she blonds".
            tree.lemmas[token] = tree.words[token]
        tree.tags[token] = "NN"


def _nouns_joined(tree: Tree, token: int) -> None:
    """In "a bus and red car" the parser sees a compound of bus and red, and car.

    Clothes are joined without a colour, too ("a helmet and rubber suit").
    """
    head = tree.heads[token]
    if tree.deps[token] not in _BEFORE_HEAD or head < token or tree.words[token + 1] != "and":
        return
    inner = [t for t in tree.below(token, {"conj"}) if t < head]
    coloured = inner and tree.tags[inner[-1]] == "JJ"
    if tree.lemmas[token] in WORN:
        tree.tags[token] = "NN"
    elif not coloured or not is_noun(tree, token):
        return
    _replace(tree, head, token)
    tree.attach(head, token, "conj")
    for child in inner:
        tree.attach(child, head, "amod" if tree.tags[child].startswith("JJ") else "compound")


def _replace(tree: Tree, head: int, token: int) -> None:
    """Give `token` the role of its head and the words before both, and attach the head to it."""
    before = [t for t in tree.children[head] if t < min(head, token)]
    top, role = tree.heads[head], tree.deps[head]
    tree.attach(token, token if top == head else top, role)
    for child in [*before, head]:
        tree.attach(child, token, tree.deps[child])


def _adjective_has_adverb(tree: Tree, token: int) -> None:
    """In "light blue", "golden haired" and "snow covered" the first word belongs to the second."""
    before, word = token - 1, tree.words[token]
    if before < 0 or tree.deps[before] not in _ADVERBIAL or tree.deps[token] == "ROOT":
        return
    adverb, tag, head = tree.words[before], tree.tags[before], tree.heads[token]
    if word in COLOURS:  # But a dark red house has no light.
        joined = adverb in SHADES and not (adverb == "dark" and tree.lemmas[head] in PLACES)
    elif tree.deps[token] not in _BEFORE_HEAD or head < token:
        return
    elif word == "american":
        joined = adverb == "native" or (adverb.endswith("an") and adverb not in COLOURS)
    elif word.endswith(DENOMINAL):
        joined = tag in {"NN", "JJ"}
    else:
        joined = tag == "NN" and adverb not in COLOURS and word.endswith("ed") and len(word) > 4
        joined = joined and tree.deps[token] == "amod"
    if joined and tree.heads[before] >= token and before not in tree.above(token):
        tree.attach(before, token, "advmod")
        tree.tags[before] = "RB"
        if tree.deps[token] in _BEFORE_NOUN:
            tree.tags[token], tree.deps[token] = "JJ", "amod"


def _only_noun(tree: Tree, token: int) -> None:
    """ "Goalie" is no verb, so that "hockey" before it is no subject; "terrier" is no adjective."""
    kinds, tag, head = tree.kinds[token], tree.tags[token], tree.heads[token]
    if "NN" not in kinds or "JJ" in kinds or tree.words[token] in COLOURS:
        return
    if tag in _FINITE and kinds == "NN":
        tree.tags[token] = "NN"
        for noun in tree.below(token, {"nsubj"}):
            if noun == token - 1 and is_noun(tree, noun):
                tree.deps[noun] = "compound"
    elif tag in {"JJ", "JJR", "UH"} and not tree.words[token].endswith(("ed", "ing")):
        tree.tags[token], tree.lemmas[token] = "NN", tree.words[token]
        if tree.deps[token] not in {"amod", "intj"}:
            return
        if head > token:
            tree.deps[token] = "nsubj" if is_verb(tree, head) else "compound"
        elif head == token - 1 and is_noun(tree, head):  # "A fire hydrant".
            _replace(tree, head, token)
            tree.deps[head] = "compound"


def _participle_after_noun(tree: Tree, token: int) -> None:
    """In "kids in a gym playing volleyball" the parser sees a compound of three nouns."""
    noun, word = token - 1, tree.words[token]
    if not word.endswith("ing") or noun < 0 or not is_noun(tree, noun):
        return
    role, head = tree.deps[token], tree.heads[token]
    before = tree.deps[noun] in _BEFORE_PARTICIPLE
    if tree.tags[token] == "VBG" and role == "amod" and not before:
        tree.attach(token, noun, "acl")  # "A hill overlooking green grass".
        tree.attach(head, token, "dobj")
        return
    inside = noun in tree.below(token, _BEFORE_PARTICIPLE)
    person = is_animate(tree, noun) and tree.lemmas[noun] not in ANIMALS
    acting = person or tree.lemmas[noun] in WORN
    if role in _BEFORE_HEAD and (inside or noun in tree.below(head, _BEFORE_NOUN)):
        # "A beach chopping coconuts", but "a street vending machine".
        there = tree.tags[head] == "NNS" or (role != "amod" and tree.lemmas[noun] in PLACES)
        last = head if acting or there else None
    else:
        moving = word in _MOVING_PARTICIPLES and "".join(tree.deps[token + 1 : token + 2]) == "prep"
        stated = word in _STATE_PARTICIPLES or moving or tree.below(token, {"dobj"})
        last = token if inside and (acting or stated) else None
    if last is None:
        return
    _replace(tree, last, noun)
    tree.attach(token, noun, "acl")
    if last != token:
        tree.attach(last, token, "dobj")
    tree.tags[token] = "VBG"
    tree.lemmas[token] = participle_base(word)


def _colour_ends_phrase(tree: Tree, token: int) -> None:
    """In "blonds in black and white walk" the blonds are in black and white, not in a walk."""
    first = next(iter(tree.below(token, {"amod"})), token)
    if tree.deps[token] != "pobj" or not is_verb(tree, token) or tree.words[first] not in COLOURS:
        return
    if tree.tags[token] in _FINITE:
        tree.attach(first, tree.heads[token], "pobj")
        tree.attach(token, tree.root(token), "acl")


def _plural_has_no_singular(tree: Tree, token: int) -> None:
    """ "Shorts" are no "short", but two glasses and a glass of water are vessels."""
    vessels = tree.below(token, {"nummod"}) or measured(tree, token) is not None
    if is_noun(tree, token) and not vessels:
        tree.lemmas[token] = tree.words[token]


RETAGGINGS: tuple[Repair, ...] = (
    (_only_noun, None),
    (_nouns_joined, None),
    (_adjective_has_adverb, None),
    (_colour_ends_phrase, None),
    (_participle_after_noun, None),
    (_verb_has_base, None),
    (_noun_is_verb, None),
    (_clause_has_verb, None),
    (_joined_noun_is_verb, None),
    (_state_describes, _STATE_PARTICIPLES),
    (_adjective_describes, None),
    (_colour_describes, None),
    (_determined_word_is_noun, None),
    (_plural_has_no_singular, PLURALS),
)
