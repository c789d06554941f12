"""Repairs of verbs after clothes, colours and parts of the body: "a man in green climbs"."""

from manymatch.scene_graphs.clauses import CLAUSES, SUBJECTS
from manymatch.scene_graphs.lexicon import ACTIONS, BODILY, BODY, COLOURS, WORN
from manymatch.scene_graphs.tree import AUXILIARIES, FINITE, PRESENT, Repair, Tree
from manymatch.scene_graphs.verbs import is_participle, participle_base

_AFTER = frozenset({"advcl", "ccomp", "conj", "dobj", "xcomp"})
_OBJECTS = frozenset({"a", "an", "the", "his", "her", "its", "their", "another", "some"})
_AFTER_VERBS = frozenset({"advcl", "appos", "dobj", "npadvmod", "prep", "xcomp"})
_COLOUR_ROW = COLOURS | {",", "and"}
_SUBORDINATE = frozenset({"as", "because", "when", "where", "while"})
_BEFORE_NOUN = frozenset({"amod", "compound", "det", "nummod", "poss"})
_OF_PERSONS = frozenset({"clad", "dressed", "seated", "surrounded"})


def _part_is_in_state(tree: Tree, token: int) -> None:
    """Attach the participle to a part of the wearer, and the verb to the wearer.

    Example: in "a girl with her arms spread out jumps" the arms are spread out, and the girl jumps.
    The parser takes the participle for the girl's verb, and the verb for an object or adverb.
    """
    part = token - 1
    if part < 1 or tree.deps[part] != "pobj" or tree.words[tree.heads[part]] != "with":
        return
    if tree.below(token, AUXILIARIES) or tree.words[token] in _OF_PERSONS:
        return
    if not _is_part(tree, part):
        return
    # A part of the body can move itself: a tongue hangs, but a mouth does not sit.
    moves = tree.lemmas[part] in BODY and tree.words[token] in BODILY
    if tree.tags[token] == "VBG" and not moves:
        return
    link, verb = tree.heads[part], _verb_after(tree, token)
    owners = [t for t in [*tree.below(token, SUBJECTS), *tree.above(link)] if tree.is_noun(t)]
    if not owners:
        return
    owner, top = owners[0], tree.heads[token] == token
    if not top and tree.deps[token] not in CLAUSES:
        return
    if verb is not None and (top or tree.heads[owner] == owner):
        tree.attach(verb, verb, "ROOT")
        tree.attach(owner, verb, "nsubj")
        tree.tags[verb] = "VBZ" if tree.tags[verb] == "NNS" else tree.tags[verb]
    elif top:
        tree.attach(owner, owner, "ROOT")
    for other in tree.below(token, SUBJECTS):  # "Both with their hands turned".
        tree.attach(other, owner, "det")
    for other in tree.children[token]:
        if other != verb and tree.tags[other] in {"VBG", "VBN"}:  # "Seated with her legs crossed".
            tree.attach(other, owner, "acl")
    if token in tree.above(link):
        tree.attach(link, owner, "prep")
    tree.attach(token, part, "acl")
    if tree.tags[token] == "VBD":
        tree.tags[token] = "VBN"


def _colour_before_participle(tree: Tree, token: int) -> None:
    """Attach a participle after a colour to the wearer, and not to the colour.

    Example: in "girl in red jumping up" the girl is in red and jumps. A participle before a noun is
    unchanged, as in "in black running shoes".
    """
    first = token - 1
    if first < 2 or tree.words[first] not in COLOURS or not is_participle(tree.words[token]):
        return
    while tree.words[first - 1] in COLOURS or tree.words[first - 1] in {",", "and"}:
        first -= 1
    link, wearer = first - 1, first - 2
    before_noun = tree.deps[token] in _BEFORE_NOUN and tree.heads[token] > token
    if tree.words[link] != "in" or before_noun or wearer < 0 or not tree.is_noun(wearer):
        return
    if tree.tags[token] == "NN":
        if participle_base(tree.words[token]) not in ACTIONS:
            return
        tree.tags[token], tree.lemmas[token] = "VBG", participle_base(tree.words[token])
        for after in [t for t in tree.below(wearer, {"prep"}) if t == token + 1]:
            tree.attach(after, token, "prep")
    if tree.deps[token] == "pcomp" or link in tree.above(token):
        tree.attach(token, wearer, "acl")
    if tree.heads[first] != link:
        tree.attach(first, link, "pobj")
    tree.deps[first] = "pobj"
    tree.attach(link, wearer, "prep")
    if tree.heads[token] == token and tree.heads[wearer] == wearer:
        tree.attach(token, wearer, "acl")


def verb_after_clothes(tree: Tree, token: int) -> None:
    """Make a word after clothes the verb of the wearer.

    Examples: "a man in green climbs a rock", "a man in a tie leans on a car". The caption has no
    other finite verb, and the word is an action or has an object. A bare form ("two men in white
    play") needs several subjects.
    """
    worn, tag, lemma = token - 1, tree.tags[token], tree.lemmas[token]
    if tag not in {"NN", "NNS"} or worn < 1 or "VB" not in tree.kinds[token] or lemma in WORN:
        return
    if not _ends_colours(tree, worn) and not (tree.lemmas[worn] in WORN and tree.is_noun(worn)):
        return
    above, root = list(tree.above(token)), tree.root(token)
    if root == token or not tree.is_noun(root) or _has_verb(tree, token):
        return
    object_follows = tag == "NNS" and "".join(tree.words[token + 1 : token + 2]) in _OBJECTS
    if lemma not in ACTIONS and not object_follows:
        return
    if tag == "NN" and tree.tags[root] != "NNS" and not tree.below(root, {"conj"}):
        return
    if worn in tree.children[token]:
        tree.attach(worn, tree.heads[token], tree.deps[token])
        for child in [t for t in tree.children[token] if t < worn]:
            tree.attach(child, worn, tree.deps[child])
    tree.attach(token, token, "ROOT")
    tree.attach(root, token, "nsubj")
    tree.tags[token] = "VBZ" if tag == "NNS" else "VBP"
    for other in above:
        for child in tree.children[other]:
            if child > token and tree.deps[child] in _AFTER_VERBS:
                role = "dobj" if tree.deps[child] == "appos" else tree.deps[child]
                tree.attach(child, token, role)


def _ends_colours(tree: Tree, token: int) -> bool:
    """Return whether `token` is the last colour of "in orange, white and black"."""
    while token > 0 and tree.words[token] in _COLOUR_ROW:
        token -= 1
        if tree.words[token] == "in":
            return True
    return False


def _has_verb(tree: Tree, token: int) -> bool:
    """Return whether the main clause around `token` has a finite verb."""
    end = next((t for t in range(token, len(tree)) if tree.words[t] in _SUBORDINATE), len(tree))
    return any(tag in FINITE for tag in tree.tags[:end])


def _is_part(tree: Tree, noun: int) -> bool:
    """Return whether the noun is someone's thing, or "the" part of a body."""
    if tree.possessed(noun):
        return tree.is_noun(noun) and not tree.is_animate(noun)
    return tree.lemmas[noun] in BODY and any(tree.words[t] == "the" for t in tree.children[noun])


def _verb_after(tree: Tree, participle: int) -> int | None:
    """Return the verb of the caption, at most two words after the participle."""
    for token in tree.below(participle, _AFTER):
        if participle < token <= participle + 2:
            plural = tree.tags[token] == "NNS" and tree.lemmas[token] in ACTIONS
            if tree.tags[token] in PRESENT or (plural and not tree.below(token, _BEFORE_NOUN)):
                return token
    return None


VERBS_OF_WEARERS: tuple[Repair, ...] = (
    Repair(_colour_before_participle, tags=frozenset({"NN", "VBG"})),
    Repair(_part_is_in_state, tags=frozenset({"VBD", "VBG", "VBN"})),
)
