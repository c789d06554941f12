"""The objects of a caption: heads of noun chunks with their compounds."""

from dataclasses import dataclass

from manymatch.scene_graphs.lexicon import MEASURES, MOMENTS, PRONOUNS, QUANTITIES
from manymatch.scene_graphs.tree import Tree

COMPOUND = frozenset({"compound", "nmod"})
_INNER = frozenset(
    {"compound", "nmod", "amod", "merged", "expl", "prt", "advmod", "intj", "nummod", "quantmod"}
)
_ONE = frozenset({"det", "poss"})


@dataclass(frozen=True, slots=True)
class Objects:
    """The phrase and lemmatised name of each object; `number` maps tokens to objects.

    Both nouns of "pair of shoes" belong to one object.
    """

    phrases: list[str]
    names: list[str]
    number: dict[int, int]


def find_objects(tree: Tree) -> Objects:
    """Return the objects in the order of the caption.

    A caption without nouns has one object, the word that heads it.
    """
    objects = Objects([], [], {})
    for token in range(len(tree)):
        if token not in objects.number and _is_object(tree, token):
            _add(objects, tree, token)
    return objects if objects.phrases else _head_phrase(tree)


def _add(objects: Objects, tree: Tree, token: int) -> None:
    number = len(objects.phrases)
    phrase, name = _phrase(tree, token)
    inner = measured(tree, token)
    objects.number[token] = number
    if inner is not None:
        objects.number[inner] = number
        inner_phrase, inner_name = _phrase(tree, inner)
        if tree.lemmas[token] in QUANTITIES:
            phrase, name = inner_phrase, inner_name
        else:
            phrase, name = f"{phrase} of {inner_phrase}", f"{name} of {inner_name}"
    objects.phrases.append(phrase)
    objects.names.append(name)


def _is_object(tree: Tree, token: int) -> bool:
    tag, dep, word = tree.tags[token], tree.deps[token], tree.words[token]
    if word in PRONOUNS or not word[0].isalpha():
        return False
    if tag.startswith("NN"):
        return dep not in _INNER and not (dep == "npadvmod" and not _is_place(tree, token))
    if dep == "conj" and tree.heads[token] == token - 2:  # "Dressed in black and white".
        return tag == "JJ" and tree.tags[token - 2] == "JJ" and tree.deps[token - 2] == "pobj"
    return tag.startswith("JJ") and dep in {"pobj", "dobj", "nsubj", "nsubjpass"}


def _is_place(tree: Tree, token: int) -> bool:
    """Return whether an adverbial noun is an object; it is not in "one day" and "knee-deep"."""
    return tree.tags[tree.heads[token]].startswith("VB") and tree.lemmas[token] not in MOMENTS


def measured(tree: Tree, token: int) -> int | None:
    """Return the noun after "of" if `token` measures or counts it, else None."""
    counts = tree.lemmas[token] in QUANTITIES
    if not counts and tree.lemmas[token] not in MEASURES:
        return None
    for preposition in tree.below(token, {"prep"}):
        if tree.words[preposition] == "of":
            inner = next(iter(tree.below(preposition, {"pobj"})), None)
            # "A line of the shore" and "a team of France" are no lines and teams of things.
            named = counts and inner and (tree.below(inner, _ONE) or tree.tags[inner] == "NNP")
            return None if named else inner
    return None


def gathers(tree: Tree, token: int) -> bool:
    """Return whether `token` only counts another noun: "group" in "a group of men"."""
    return tree.lemmas[token] in QUANTITIES and measured(tree, token) is not None


def _phrase(tree: Tree, token: int) -> tuple[str, str]:
    """Return the phrase of a noun with its compounds, as written and with the noun's lemma."""
    before = "".join(tree.words[part] + " " for part in _compounds(tree, token))
    word = tree.words[token]  # A lemma of an adjective ("cleaner") would be another word.
    return before + word, before + (word if tree.tags[token] == "JJR" else tree.lemmas[token])


def _compounds(tree: Tree, token: int) -> list[int]:
    tokens = [token]
    for head in tokens:  # The list grows in the loop, as compounds may have compounds.
        tokens += [part for part in tree.below(head, COMPOUND) if part < token]
    return sorted(tokens[1:])


def _head_phrase(tree: Tree) -> Objects:
    """Return the object of a caption without nouns: the word that heads it."""
    roots = [t for t in range(len(tree)) if tree.heads[t] == t and tree.words[t][0].isalnum()]
    token = roots[0] if roots else 0
    return Objects([tree.words[token]], [tree.lemmas[token]], {token: 0})
