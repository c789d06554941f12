"""Joins hyphenated words and spatial phrases to one word each."""

from manymatch.scene_graphs import lexicon
from manymatch.scene_graphs.tree import AUXILIARIES, MERGED, Tree
from manymatch.scene_graphs.verbs import participle_base

_HEADING = frozenset({"compound", "nmod", "nsubj", "nsubjpass", "amod", "npadvmod"})


def join_hyphens(tree: Tree) -> None:
    """Join "t - shirt" and "salmon - colored" to one word each."""
    token = len(tree) - 2
    while token > 0:
        if _is_hyphen(tree, token):
            first = token - 1
            while first > 1 and _is_hyphen(tree, first - 1):
                first -= 2
            _join(tree, first, token + 1)
            token = first
        token -= 1


def _is_hyphen(tree: Tree, token: int) -> bool:
    """The tagger takes some hyphens for words, but a dash between phrases for punctuation (":")."""
    return tree.tags[token] == "HYPH" or (tree.words[token] == "-" and tree.tags[token] != ":")


def _join(tree: Tree, first: int, last: int) -> None:
    before = "".join(tree.words[first:last])
    tree.words[last] = before + tree.words[last]
    tree.lemmas[last] = before + tree.lemmas[last]
    tag = tree.tags[last]
    tree.merge(first, last, core=last)
    tree.tags[last] = tag


def join_close_up(tree: Tree) -> None:
    """Join "close up", which the parser takes for an adjective or verb with a preposition.

    The words are a noun before "of" ("a close up of a dog") and an adjective before the name of a
    picture ("a close up view of a dog").
    """
    for first, word in enumerate(tree.words[:-2]):
        up, after = first + 1, first + 2
        picture = tree.words[after] in lexicon.PICTURES
        if word != "close" or tree.words[up] != "up" or not (picture or tree.words[after] == "of"):
            continue
        tree.words[up] = tree.lemmas[up] = "close up"
        tree.merge(first, up, core=up)
        tree.tags[up] = "JJ" if picture else "NN"
        if picture:
            tree.attach(up, after, "amod")
        elif first and tree.heads[up] == first - 1 and tree.heads[first - 1] == first - 1:
            tree.replace(first - 1, up)  # "Extreme close up of a dog".
            tree.deps[first - 1] = "amod"


def join_sports(tree: Tree) -> None:
    """Join "kite surfing" to one verb, after a noun or "is", but not before a noun ("lesson")."""
    for first, word in enumerate(tree.words):
        if word in lexicon.SPORT_STARTS:
            for length in (2, 3):
                last = first + length - 1
                if tuple(tree.words[first : last + 1]) not in lexicon.SPORTS:
                    continue
                if not "".join(tree.tags[last + 1 : last + 2]).startswith("NN"):
                    if first:
                        _join_sport(tree, first, last)
                elif not first or tree.tags[first - 1] in {"DT", "PRP$", "CD", "JJ", "IN"}:
                    _name_by_sport(tree, first, last)


def _name_by_sport(tree: Tree, first: int, last: int) -> None:
    """In "a kite surfing board" nothing surfs: the sport is a part of the board's name."""
    noun, phrase = last + 1, " ".join(tree.words[first : last + 1])
    while "".join(tree.tags[noun + 1 : noun + 2]).startswith("NN"):
        noun += 1
    tree.merge(first, last, core=last)
    tree.words[last], tree.lemmas[last], tree.tags[last] = phrase, phrase, "NN"
    if last in tree.above(noun):
        tree.replace(last, noun)
    for child in tree.children[last]:
        tree.attach(child, noun, tree.deps[child])
    tree.attach(last, noun, "compound")


def _join_sport(tree: Tree, first: int, last: int) -> None:
    before, phrase = first - 1, " ".join(tree.words[first : last + 1])
    copula = tree.lemmas[before] in {"be", "go"}
    if not copula and not (tree.is_noun(before) and tree.deps[before] != "pobj"):
        return
    tree.merge(first, last, core=last)
    tree.words[last], tree.tags[last] = phrase, "VBG"
    tree.lemmas[last] = " ".join([*phrase.split()[:-1], participle_base(phrase.split()[-1])])
    if copula:
        if tree.heads[last] == before:
            tree.replace(before, last)
        tree.deps[before] = "aux" if tree.heads[before] == last else tree.deps[before]
    elif before in tree.children[last]:
        tree.deps[before] = "nsubj"
        for child in [t for t in tree.children[last] if t < before]:
            tree.attach(child, before, tree.deps[child])


def join_spatial(tree: Tree) -> None:
    """Join "in front of", "next to" and other spatial phrases to one preposition each."""
    for first, word in enumerate(tree.words):
        if word in lexicon.SPATIAL_STARTS and tree.tags[first]:
            longest_first = (tuple(tree.words[first : first + n]) for n in lexicon.SPATIAL_LENGTHS)
            phrase = next((words for words in longest_first if words in lexicon.SPATIAL), ())
            if phrase:
                _join_preposition(tree, first, first + len(phrase) - 1)


def _join_preposition(tree: Tree, first: int, last: int) -> None:
    phrase = " ".join(tree.words[first : last + 1])
    tree.merge(first, last, core=first)
    tree.words[first] = tree.lemmas[first] = phrase
    tree.tags[first] = "IN"
    governor = _displaced(tree, first)
    if governor is not None:
        _give_way(tree, first, governor)
    noun = last + 1
    if tree.tags[noun : noun + 1] == ["VB"] and not tree.below(noun, {"dobj"}):
        tree.tags[noun] = "NN"  # "Parked next to sidewalk": no infinitive follows.
        tree.attach(noun, first, "pobj")
    if first and tree.tags[first - 1] == "VBG":
        tree.attach(first, first - 1, "prep")
    if tree.heads[first] != first:
        tree.deps[first] = "prep"


def _displaced(tree: Tree, preposition: int) -> int | None:
    """Return the "is" or noun that should govern "left of" if "left" was parsed as verb or noun."""
    for child in tree.children[preposition]:
        if tree.deps[child] in AUXILIARIES and tree.lemmas[child] == "be":
            return child
    for child in tree.children[preposition]:
        if child < preposition and tree.is_noun(child) and tree.deps[child] in _HEADING:
            return child
    return None


def _give_way(tree: Tree, preposition: int, governor: int) -> None:
    """Put `governor` in the position of the preposition, and attach the preposition to it."""
    head, dep = tree.heads[preposition], tree.deps[preposition]
    for child in tree.children[preposition]:
        if child != governor and tree.deps[child] not in {"pobj", MERGED}:
            label = "nsubj" if tree.deps[child] == "nsubjpass" else tree.deps[child]
            tree.attach(child, governor, label)
    tree.attach(governor, governor if head == preposition else head, dep)
    tree.attach(preposition, governor, "prep")
