"""Repairs of wrong tags, one function per kind of error."""

from manymatch.scene_graphs import lexicon
from manymatch.scene_graphs.objects import COMPOUND, measured
from manymatch.scene_graphs.tree import FINITE, VERBS, Repair, Tree
from manymatch.scene_graphs.verb_or_noun import BEFORE_HEAD, VERB_OR_NOUN, only_noun
from manymatch.scene_graphs.verbs import is_participle, participle_base, present_participle
from manymatch.scene_graphs.verbs_of_wearers import VERBS_OF_WEARERS

_JOINTS = frozenset({",", "and", "or", "&"})
_DETERMINERS = frozenset({"det", "nummod"})
_OF_WORDS = frozenset({"advmod", "amod"})
_BEFORE_PARTICIPLE = COMPOUND | {"npadvmod"}
_ADVERBIAL = frozenset({"amod", "advmod", "npadvmod", "compound", "nmod"})
_STATE_PARTICIPLES = frozenset(map(present_participle, lexicon.STATES))
_WITH_SINGULAR = frozenset({"boxers", "braces", "briefs", "chaps", "clippers", "glasses", "trunks"})
_MOVING_PARTICIPLES = frozenset(map(present_participle, lexicon.ACTIONS))


def _state_describes(tree: Tree, token: int) -> None:
    """A "standing horse" is not a compound, but a "swimming pool" is."""
    if tree.deps[token] in COMPOUND and tree.lemmas[tree.heads[token]] not in lexicon.GEAR:
        tree.tags[token], tree.deps[token] = "VBG", "amod"


def _adjective_describes(tree: Tree, token: int) -> None:
    """An adjective or participle before a noun is not part of a compound.

    Nor is a word with a hyphen, unless it is a garment ("t-shirt vendor").
    """
    hyphenated = "-" in tree.words[token] and tree.lemmas[token] not in lexicon.WORN
    described = tree.words[token] in lexicon.NOMINAL_ADJECTIVES or tree.kinds[token] == "JJ"
    adjective = tree.tags[token] in {"JJ", "JJR", "JJS", "VBG", "VBN"} or described or hyphenated
    if tree.deps[token] in COMPOUND and adjective:
        tree.deps[token] = "amod"
    elif tree.tags[token] == "JJ" and tree.deps[token] == "advmod":
        after_noun = tree.is_noun(tree.heads[token])  # "A goalie ready to block".
        tree.deps[token] = "amod" if after_noun else "advmod"


def _colour_describes(tree: Tree, token: int) -> None:
    """A colour before a noun or joined to an adjective is an adjective, whatever its tag."""
    word, dep, head = tree.words[token], tree.deps[token], tree.heads[token]
    coloured = word in lexicon.COLOURS or word.endswith(("color", "colour"))
    coloured = coloured or (word in lexicon.COLOURED_THINGS and tree.lemmas[head] in lexicon.WORN)
    if not coloured or tree.tags[token].startswith("JJ"):
        return
    if dep in COMPOUND or (dep == "conj" and tree.tags[head].startswith("JJ")):
        tree.tags[token] = "JJ"
        tree.deps[token] = "conj" if dep == "conj" else "amod"
        for child in tree.below(token, COMPOUND):
            tree.deps[child] = "amod"


def _adjectives_in_row(tree: Tree, token: int) -> None:
    """In "a grey and white cat" and "red, white and blue flags" all adjectives describe the noun.

    The parser takes the first for a noun, and joins the cat to it.
    """
    if not _describes(tree, token) or (token and _describes(tree, token - 1)):
        return
    row, last = [token], token
    while True:
        after = last + 1
        while tree.words[after : after + 1] and tree.words[after] in _JOINTS and after < last + 3:
            after += 1
        if after == len(tree) or not _describes(tree, after):
            break
        row.append(last := after)
    noun = _noun_after(tree, last)
    if noun is None or len(row) == last - token + 1:
        return
    above = [t for t in row if t in tree.above(noun)]
    if not above and not any(tree.is_noun(t) for t in row):
        return
    for other in sorted(above, key=lambda t: len(list(tree.above(t)))):
        if other in tree.above(noun):
            tree.replace(other, noun)
    head = tree.heads[noun]
    if tree.deps[noun] in _OF_WORDS and tree.is_verb(head):
        tree.deps[noun] = "nsubj"
    elif tree.deps[noun] in _OF_WORDS and tree.is_noun(head):
        tree.deps[noun] = "compound"
        noun = _last_of_compound(tree, noun)
    elif tree.deps[noun] in _OF_WORDS and token and tree.tags[token - 1] == "IN":
        tree.attach(noun, token - 1, "pobj")
    for other in row:
        for child in tree.children[other]:
            if child not in row and tree.deps[child] not in {"advmod", "cc", "npadvmod", "punct"}:
                tree.attach(child, noun, tree.deps[child])
        tree.attach(other, noun, "amod")
        tree.tags[other] = "JJ"


def _describes(tree: Tree, token: int) -> bool:
    """Return whether `token` is an adjective, whatever its tag: a colour or no noun."""
    if tree.words[token] in lexicon.COLOURS:
        return True
    return tree.tags[token] == "JJ" or (tree.kinds[token] == "JJ" and tree.is_noun(token))


def _noun_after(tree: Tree, token: int) -> int | None:
    """Return the noun that an adjective at `token` stands before: the last of a compound."""
    noun = tree.heads[token] if tree.deps[token] in BEFORE_HEAD else token + 1
    if noun <= token or noun >= len(tree) or not tree.is_noun(noun):
        return None
    return _last_of_compound(tree, noun)


def _last_of_compound(tree: Tree, noun: int) -> int:
    while tree.deps[noun] in COMPOUND and tree.heads[noun] > noun:
        noun = tree.heads[noun]
    return noun


def _nouns_joined(tree: Tree, token: int) -> None:
    """In "a bus and red car" the parser sees a compound of bus and red, and car.

    Clothes are joined without a colour, too ("a helmet and rubber suit").
    """
    head = tree.heads[token]
    if tree.deps[token] not in BEFORE_HEAD or head < token or tree.words[token + 1] != "and":
        return
    inner = [t for t in tree.below(token, {"conj"}) if t < head]
    coloured = inner and tree.tags[inner[-1]] == "JJ"
    if tree.lemmas[token] in lexicon.WORN:
        tree.tags[token] = "NN"
    elif not coloured or not tree.is_noun(token):
        return
    tree.replace(head, token)
    tree.attach(head, token, "conj")
    for child in inner:
        tree.attach(child, head, "amod" if tree.tags[child].startswith("JJ") else "compound")


def _adjective_has_adverb(tree: Tree, token: int) -> None:
    """In "light blue", "golden haired" and "snow covered" the first word belongs to the second."""
    before, word = token - 1, tree.words[token]
    if before < 0 or tree.deps[before] not in _ADVERBIAL or tree.deps[token] == "ROOT":
        return
    adverb, tag, head = tree.words[before], tree.tags[before], tree.heads[token]
    if word in lexicon.COLOURS:  # But a dark red house has no light.
        joined = adverb in lexicon.SHADES and not (
            adverb == "dark" and tree.lemmas[head] in lexicon.PLACES
        )
    elif tree.deps[token] not in BEFORE_HEAD or head < token:
        return
    elif word == "american":
        joined = adverb == "native" or (adverb.endswith("an") and adverb not in lexicon.COLOURS)
    elif word.endswith(lexicon.DENOMINAL):
        joined = tag in {"NN", "JJ"}
    else:
        joined = (
            tag == "NN" and adverb not in lexicon.COLOURS and word.endswith("ed") and len(word) > 4
        )
        joined = joined and tree.deps[token] == "amod"
    if joined and tree.heads[before] >= token and before not in tree.above(token):
        tree.attach(before, token, "advmod")
        tree.tags[before] = "RB"
        if tree.deps[token] in COMPOUND:
            tree.tags[token], tree.deps[token] = "JJ", "amod"


def _participle_after_noun(tree: Tree, token: int) -> None:
    """In "kids in a gym playing volleyball" the parser sees a compound of three nouns."""
    noun, word = token - 1, tree.words[token]
    if not is_participle(word) or noun < 0 or not tree.is_noun(noun):
        return
    role, head = tree.deps[token], tree.heads[token]
    before = tree.deps[noun] in _BEFORE_PARTICIPLE
    if tree.tags[token] == "VBG" and role == "amod" and not before:
        tree.attach(token, noun, "acl")  # "A hill overlooking green grass".
        tree.attach(head, token, "dobj")
        return
    inside = noun in tree.below(token, _BEFORE_PARTICIPLE)
    person = tree.is_animate(noun) and tree.lemmas[noun] not in lexicon.ANIMALS
    acting = person or tree.lemmas[noun] in lexicon.WORN or word in lexicon.TRANSITIVES
    if role in BEFORE_HEAD and (inside or noun in tree.below(head, COMPOUND)):
        # "A beach chopping coconuts", but "a street vending machine".
        there = tree.tags[head] == "NNS" or (role != "amod" and tree.lemmas[noun] in lexicon.PLACES)
        last = head if acting or there else None
    else:
        moving = word in _MOVING_PARTICIPLES and "".join(tree.deps[token + 1 : token + 2]) == "prep"
        stated = word in _STATE_PARTICIPLES or moving or tree.below(token, {"dobj"})
        last = token if inside and (acting or stated) else None
    if last is None:
        return
    tree.replace(last, noun)
    tree.attach(token, noun, "acl")
    if last != token:
        tree.attach(last, token, "dobj")
    tree.tags[token] = "VBG"
    tree.lemmas[token] = participle_base(word)


def _colour_ends_phrase(tree: Tree, token: int) -> None:
    """In "blonds in black and white walk" the blonds are in black and white, not in a walk."""
    first = next(iter(tree.below(token, {"amod"})), token)
    if (
        tree.deps[token] != "pobj"
        or not tree.is_verb(token)
        or tree.words[first] not in lexicon.COLOURS
    ):
        return
    if tree.tags[token] in FINITE:
        tree.attach(first, tree.heads[token], "pobj")
        tree.attach(token, tree.root(token), "acl")


def _determined_word_is_noun(tree: Tree, token: int) -> None:
    """A word with article or numeral is a noun, even if it looks like a verb ("a building")."""
    if tree.is_verb(token) and tree.below(token, _DETERMINERS):
        if tree.tags[token] != "VBZ":  # "Three blonds" has the lemma of "she blonds".
            tree.lemmas[token] = tree.words[token]
        tree.tags[token] = "NN"


def _plural_has_no_singular(tree: Tree, token: int) -> None:
    """ "Shorts" are no "short", but two glasses and a glass of water are vessels."""
    counted = tree.below(token, {"nummod"}) and tree.words[token] in _WITH_SINGULAR
    if tree.is_noun(token) and not counted and measured(tree, token) is None:
        tree.lemmas[token] = tree.words[token]


def _singular(tree: Tree, token: int) -> None:
    if tree.is_noun(token):
        tree.lemmas[token] = tree.words[token][:-1]


RETAGGINGS: tuple[Repair, ...] = (
    Repair(only_noun),
    Repair(_adjectives_in_row),
    Repair(_nouns_joined),
    Repair(_adjective_has_adverb),
    Repair(_colour_ends_phrase),
    Repair(_participle_after_noun),
    *VERBS_OF_WEARERS,
    *VERB_OR_NOUN,
    Repair(_state_describes, _STATE_PARTICIPLES),
    Repair(_adjective_describes),
    Repair(_colour_describes),
    Repair(_determined_word_is_noun, tags=VERBS),
    Repair(_plural_has_no_singular, lexicon.PLURALS),
    Repair(_singular, lexicon.PLURALS_IN_S),
)
