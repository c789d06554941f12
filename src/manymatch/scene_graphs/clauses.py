"""The arguments of verbs and prepositions.

Conjunctions, relative clauses, participles, infinitives and the passive move arguments away from
their verb. These functions find the arguments. Parameters and results are token indexes.
"""

from manymatch.scene_graphs.lexicon import INTRANSITIVES, MOMENTS, RELATIVES
from manymatch.scene_graphs.tree import Tree

CLAUSES = frozenset({"relcl", "acl"})
_COORDINATES = frozenset({"conj", "appos"})
SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj"})
_SHOWN = frozenset({"attr", "dobj"})
_BORROWING = frozenset(
    {"conj", "acl", "advcl", "xcomp", "ccomp", "pcomp", "dep", "parataxis", "acomp"}
)
_LENDING = {"prep": "acomp", "advmod": "acomp"}
_DISTRIBUTING = frozenset({"all", "both", "each"})
_PASSIVE_MARKS = frozenset({"auxpass", "nsubjpass", "agent"})
_ACTIVE_MARKS = frozenset({"aux", "dobj", "nsubj"})


def coordinated(tree: Tree, token: int) -> list[int]:
    """Return `token` and the nouns joined to it: from "cup", "a cup, a plate and a fork"."""
    joined = [token]
    for noun in joined:  # The list grows in the loop, as joined nouns may have joined nouns.
        joined += [t for t in tree.below(noun, _COORDINATES) if not tree.is_verb(t)]
    return joined


def antecedent(tree: Tree, token: int) -> int | None:
    """Return the noun that the relative clause around `token` describes, or None."""
    for ancestor in (token, *tree.above(token)):
        if tree.deps[ancestor] in CLAUSES:
            return tree.heads[ancestor]
    return None


def nouns(tree: Tree, tokens: list[int]) -> list[int]:
    """Return `tokens` and their joined nouns, with antecedents in place of relative pronouns."""
    resolved: list[int] = []
    for token in tokens:
        if tree.words[token] in RELATIVES:
            noun = antecedent(tree, token)
            resolved += [] if noun is None else [noun]
        else:
            resolved += coordinated(tree, token)
    return resolved


def is_passive(tree: Tree, verb: int) -> bool:
    """Return whether the verb is passive ("held by", "is held", "dressed")."""
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
    """Return the subjects of the verb, or of the governing clause if the verb has none.

    A dog "ready to jump", "about to jump" or "outside jumping" jumps.
    """
    while not (own := _own_subjects(tree, verb)):
        dep, head = tree.deps[verb], tree.heads[verb]
        if dep == "pcomp":  # "... after jumping": the preposition is attached to the other verb.
            head = tree.heads[head]
        elif dep == "xcomp" and not (tree.is_verb(head) or tree.is_noun(head)):
            dep, head = _LENDING.get(tree.deps[head], tree.deps[head]), tree.heads[head]
        if head == verb or not (tree.is_verb(head) and dep in _BORROWING):
            return [head] if tree.is_noun(head) else []
        verb = head
    return nouns(tree, own)


def _own_subjects(tree: Tree, verb: int) -> list[int]:
    own = tree.below(verb, SUBJECTS)
    for auxiliary in [] if own else tree.below(verb, {"auxpass"}):  # "A bird sits perched".
        own = tree.below(auxiliary, SUBJECTS)
    if len(own) > 1 and tree.words[own[-1]] in _DISTRIBUTING:  # "Three men each hold a ball".
        own.pop()
    own = own[-1:]  # The first of two belongs to another clause.
    if not own and tree.lemmas[verb] == "be":
        return tree.below(verb, _SHOWN)  # "There is a dog", "On the table is a cup".
    return own


def direct_objects(tree: Tree, verb: int) -> list[int]:
    """Return the direct objects, also the antecedent in "the ball (that) the man holds"."""
    objects = nouns(tree, tree.below(verb, {"dobj", "dative"}))
    if not objects and tree.lemmas[verb] not in INTRANSITIVES:
        for other in tree.below(verb, {"conj"}):  # "Cleaning and gutting a fish".
            if other == verb + 2 and tree.tags[other] == tree.tags[verb]:
                return direct_objects(tree, other)
    if objects or tree.deps[verb] not in CLAUSES or not tree.below(verb, {"nsubj"}):
        return objects
    return [tree.heads[verb]] if _lacks_object(tree, verb) else []


def _lacks_object(tree: Tree, verb: int) -> bool:
    """Return whether a relative clause with its own subject describes the object of its verb."""
    if any(tree.words[token] in RELATIVES for token in tree.children[verb]):
        return False
    if tree.below(verb, {"advmod", "acomp", "attr", "xcomp", "ccomp"}):
        return False
    links = tree.below(verb, {"prep"})
    if not links:
        return True
    if tree.lemmas[verb] in INTRANSITIVES or tree.lemmas[tree.heads[verb]] in MOMENTS:
        return False
    if not any(tree.is_animate(noun) for noun in tree.below(verb, {"nsubj"})):
        return False
    nouns_after = [tree.below(link, {"pobj"}) for link in links if link > verb]
    complete = [own for own in nouns_after if own and tree.words[own[0]] not in RELATIVES]
    return len(complete) == len(links)  # "A toy a dog bites in a park".


def complements(tree: Tree, preposition: int) -> list[int]:
    """Return the nouns after a preposition, also for "on" in "on and under the table"."""
    own = tree.below(preposition, {"pobj"})
    if own:
        return nouns(tree, own)
    for other in tree.below(preposition, {"conj"}):
        return complements(tree, other)
    return _stranded(tree, preposition)


def _stranded(tree: Tree, preposition: int) -> list[int]:
    """Return the antecedent in "the log (that) the dog jumps over"."""
    head = tree.heads[preposition]
    if (
        tree.deps[head] == "relcl"
        and tree.below(head, {"nsubj"})
        and not tree.children[preposition]
    ):
        return [tree.heads[head]]
    return []


_NOT = frozenset({"not", "n't", "nt", "never"})
_EITHER = frozenset({"neither", "nor"})
_AVOIDING = {"without": ["actually", "ever", "even"], "instead": ["of"], "rather": ["than"]}
"""Words that deny a participle, and the words that may stand between."""
_FAILING = frozenset({"fail", "forget", "refuse", "unable"})
_DENIALS = _NOT | _EITHER | _AVOIDING.keys() | _FAILING | {"longer"}
_ARGUMENTS = frozenset({"nsubj", "nsubjpass", "dobj", "pobj", "attr"})


def find_denied(tree: Tree) -> set[int]:
    """Return the verbs, prepositions, predicates and nouns that the caption denies.

    They make no attribute and no relation, because the graph would state the opposite.
    """
    denied: set[int] = set()
    if _DENIALS.isdisjoint(tree.words) and _FAILING.isdisjoint(tree.lemmas):
        return denied
    for token, word in enumerate(tree.words):
        for other in _denied_by(tree, token, word):
            _deny(tree, other, denied)
    return denied


def _denied_by(tree: Tree, token: int, word: str) -> list[int]:
    head, after = tree.heads[token], "".join(tree.words[token + 1 : token + 2])
    if word in _NOT:
        if after in {"only", "just"} or tree.deps[head] == "amod":
            return []  # "A not so happy dog" has the attribute "not so happy".
        return [head, token + 1] if after in {"all", "every", "many", "much"} else [head]
    if word == "longer":
        return [head] if token and tree.words[token - 1] == "no" else []
    if word == "neither":
        return [tree.heads[head] if tree.deps[head] in _ARGUMENTS else head]
    if word == "nor":
        return [t for t in tree.below(head, {"conj"}) if t > token and not tree.is_noun(t)]
    if word in _AVOIDING:
        verb = token + 1 + (after in _AVOIDING[word])
        return [verb] if tree.tags[verb : verb + 1] == ["VBG"] else []
    if tree.lemmas[token] in _FAILING:
        return tree.below(token, {"xcomp"})
    return []


def _deny(tree: Tree, token: int, denied: set[int]) -> None:
    """Add `token` and what belongs to it: its prepositions, complements and alternatives."""
    if token in denied:
        return
    denied.add(token)
    joint = ""
    for child in tree.children[token]:
        dep = tree.deps[child]
        if dep == "cc":
            joint = tree.words[child]
        elif dep in {"prep", "agent", "prt", "advmod", "acomp", "oprd", "xcomp", "ccomp"}:
            _deny(tree, child, denied)
        elif dep == "conj":  # "Not black but white", "not smiling and looking at a dog".
            if joint in {"or", "nor"} or (joint == "and" and not tree.is_verb(child)):
                _deny(tree, child, denied)
        elif dep in {"dobj", "attr"}:  # "Not wearing a hat on his head".
            for link in tree.below(child, {"prep"}):
                _deny(tree, link, denied)
