"""Repairs of phrases that the parser attaches to a thing, not to the person who acts or wears."""

from manymatch.scene_graphs import lexicon
from manymatch.scene_graphs.clauses import CLAUSES, SUBJECTS
from manymatch.scene_graphs.tree import Repair, Tree

_WORN_OR_BODY = lexicon.WORN | lexicon.BODY


def _worn_by_nearest(tree: Tree, token: int) -> None:
    """In "looking at a woman in a dress" the woman is in the dress; so for "sheep with horns".

    In "a dress with a belt" the belt is the woman's, too.
    """
    worn = tree.below(token, {"pobj"})
    nearest = token - 2 if token > 1 and tree.words[token - 1] == "," else token - 1
    if not worn or not tree.is_noun(nearest):
        return
    if not tree.is_verb(tree.heads[token]) and tree.heads[token] != nearest:
        return
    lemma = tree.lemmas[worn[0]]
    wearer = None
    if lemma in lexicon.WORN and tree.lemmas[nearest] in lexicon.WORN:
        wearer = _wearer(tree, nearest)
    elif lemma in lexicon.WORN or (lemma in lexicon.BODY and tree.words[token] == "with"):
        wearer = nearest if tree.is_animate(nearest) else None
    if wearer is not None:
        tree.attach(token, wearer, "prep")


def _detach_with(tree: Tree, token: int) -> None:
    """Attach "with", as one of three phrases says where it belongs.

    "A vest with crosses on it": the noun before. "... with her hand in a bag", "... with people in
    the background": the verb, and the second phrase to the noun, as in "with a tear on her face".
    """
    own = tree.below(token, {"pobj"})
    if not own:
        return
    beside = tree.is_verb(tree.heads[token]) and tree.deps[token - 1] == "pobj"
    if beside and tree.is_noun(token - 1) and tree.is_animate(token - 1):
        tree.attach(token, token - 1, "prep")  # "Walks next to a boy with a drum".
        return
    earlier = [t for t in tree.below(tree.heads[token], {"prep"}) if tree.words[t] == "with"]
    if not tree.possessed(own[0]) and any(token - 1 in tree.children[t] for t in earlier):
        tree.attach(token, token - 1, "prep")  # "With a card with two wheels".
        return
    verb, noun = _verb_above(tree, token), own[0]
    after = [noun + 1] if "".join(tree.words[noun + 1 : noun + 2]) in {"in", "on"} else []
    places = [t for link in after for t in tree.below(link, {"pobj"})]
    if any(tree.words[t] in {"it", "them"} for t in places) and tree.is_noun(token - 1):
        tree.attach(token, token - 1, "prep")
    elif verb is not None and any(tree.lemmas[t] in lexicon.SETTINGS for t in places):
        tree.attach(token, verb, "prep")
    elif tree.possessed(noun) and not tree.is_animate(noun):
        if verb is not None and tree.deps[tree.heads[token]] == "pobj":
            tree.attach(token, verb, "prep")
        for link in after:
            if not any(tree.lemmas[t] in lexicon.PLACES for t in places):
                tree.attach(link, noun, "prep")
    elif any(tree.possessed(t) for t in places) and not tree.is_animate(noun):
        tree.attach(noun + 1, noun, "prep")


def _wearer_is_there(tree: Tree, token: int) -> None:
    """In "a child in a yellow shirt on a bed" the child is on the bed, not the shirt."""
    clothing = tree.heads[token]
    if tree.lemmas[clothing] not in lexicon.WORN:
        return
    if any(tree.possessed(noun) for noun in tree.below(token, {"pobj"})):
        return  # "On his head".
    link = tree.heads[clothing]
    worn = tree.deps[clothing] == "pobj" and tree.words[link] == "in"
    if worn and tree.is_animate(tree.heads[link]):
        tree.attach(token, tree.heads[link], "prep")
    elif tree.deps[clothing] == "dobj" and tree.lemmas[link] == "wear":
        tree.attach(token, link, "prep")


def _person_joins_wearer(tree: Tree, token: int) -> None:
    """In "a man in blue and a woman in white" the man is not in a woman."""
    if tree.deps[token] != "conj" or not tree.is_noun(token) or not tree.is_animate(token):
        return
    worn = tree.heads[token]
    while tree.deps[worn] == "conj":
        worn = tree.heads[worn]
    if tree.lemmas[worn] in _WORN_OR_BODY or tree.words[worn] in lexicon.COLOURS:
        wearer = _wearer(tree, worn)
        if wearer is not None and tree.is_animate(wearer):
            tree.attach(token, wearer, "conj")


def _actor_acts(tree: Tree, token: int) -> None:
    """In "a man in a red shirt holding a ball" the man holds the ball, not the shirt."""
    if tree.deps[token] not in CLAUSES or tree.lemmas[token] in lexicon.COVERING:
        return
    own = any(tree.is_noun(t) for t in tree.below(token, SUBJECTS))
    if own and not tree.below(token, {"advmod"}):
        return  # "A toy a girl is holding".
    noun = tree.heads[token]
    part = tree.lemmas[noun] in lexicon.PARTS
    if tree.tags[token] not in ({"VBG", "VBN"} if part else {"VBG"}):
        return
    if tree.lemmas[noun] in lexicon.VEHICLES or tree.is_animate(noun):
        return
    clothing = noun
    while tree.deps[clothing] == "conj" and tree.lemmas[tree.heads[clothing]] in lexicon.WORN:
        clothing = tree.heads[clothing]
    link = tree.heads[noun] if tree.deps[noun] == "pobj" else noun
    if (
        tree.lemmas[noun] in lexicon.BODY
        and tree.possessed(noun)
        and tree.words[token] in lexicon.BODILY
    ):
        return  # "With her hair blowing".
    absolute = tree.words[link] == "with" and tree.below(noun, {"det"})  # "With the sun shining".
    actor = _wearer(tree, clothing) if tree.lemmas[clothing] in lexicon.WORN else None
    if actor is None and (not absolute or tree.below(token, {"dobj"})):
        actor = next((t for t in tree.above(noun) if tree.is_animate(t)), None)
        if actor is None and tree.words[link] in {"in", "on", "at"}:
            actor = tree.heads[link] if tree.is_noun(tree.heads[link]) else None
    if actor is not None:
        tree.attach(token, actor, "acl")
        return
    verb = _verb_above(tree, noun)
    if verb is None or absolute:
        return
    if any(tree.is_animate(t) for t in tree.below(verb, SUBJECTS)):
        tree.attach(token, verb, "advcl")


def _wearer(tree: Tree, clothing: int) -> int | None:
    """Return the noun before "in", "with" or "wearing" and the `clothing`, or None."""
    link = tree.heads[clothing]
    if tree.deps[clothing] == "pobj" and tree.words[link] in {"in", "with"}:
        link = tree.heads[link]
    while tree.is_verb(link) and tree.deps[link] in CLAUSES:
        link = tree.heads[link]
    if tree.lemmas[link] == "wear":  # "A lady is wearing a shirt".
        link = next(iter(tree.below(link, SUBJECTS)), link)
    return link if tree.is_noun(link) else None


def _verb_above(tree: Tree, token: int) -> int | None:
    return next((t for t in tree.above(token) if tree.is_verb(t)), None)


def _actor_of_purpose(tree: Tree, token: int) -> None:
    """In "waits for a girl to open a door" one waits for the girl, who opens the door."""
    verb = tree.heads[token]
    if tree.deps[token] != "mark" or tree.deps[verb] != "advcl":
        return
    for noun in tree.below(verb, {"nsubj"}):
        tree.attach(token, tree.heads[verb], "prep")
        tree.attach(noun, token, "pobj")
        tree.attach(verb, noun, "acl")


ACTORS: tuple[Repair, ...] = (
    Repair(_worn_by_nearest, {"in", "with"}),
    Repair(_detach_with, {"with"}),
    Repair(_person_joins_wearer),
    Repair(_wearer_is_there, lexicon.LOCATING),
    Repair(_actor_acts, tags=frozenset({"VBG", "VBN"})),
    Repair(_actor_of_purpose, {"for"}),
)
