"""Repairs of words that the tagger takes for verbs though they are nouns, or the other way."""

from manymatch.scene_graphs import lexicon
from manymatch.scene_graphs.objects import COMPOUND
from manymatch.scene_graphs.tree import AUXILIARIES, BARE, FINITE, NOUNS, VERBS, Repair, Tree
from manymatch.scene_graphs.verbs import is_participle, participle_base, verb_base
from manymatch.scene_graphs.verbs_of_wearers import verb_after_clothes

_AROUND_VERBS = frozenset({"prep", "advmod", "prt", "punct", "dobj"})
BEFORE_HEAD = frozenset({"amod", "aux", "compound", "det", "nmod", "nummod", "poss"})
_CLAUSE_HEADS = frozenset({"ROOT", "advcl", "ccomp", "conj", "relcl"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_CLAUSES = frozenset({"advcl", "ccomp", "dobj", "xcomp"})
_OF_VERBS = frozenset({"dobj", "conj"})
_ONE = frozenset({"a", "an", "each", "every", "this"})
_SINGULAR = frozenset({"NN", "NNP"})
_LINKING = lexicon.COPULAS | {"do", "have"}
_NO_NOUNS = lexicon.COLOURS | {"upside"}
_FORMS = ("ed", "ing")
_WORN_OR_BODY = lexicon.WORN | lexicon.BODY
_ACTS_ON = frozenset(participle_base(word) + "s" for word in lexicon.TRANSITIVES)


def _verb_has_base(tree: Tree, token: int) -> None:
    word, lemma = tree.words[token], tree.lemmas[token]
    if tree.tags[token] == "VBG" and lemma == word:  # The lemmatiser does not know the verb.
        tree.lemmas[token] = participle_base(word)
    elif tree.is_verb(token):
        tree.lemmas[token] = verb_base(word, lemma)


def _noun_is_verb(tree: Tree, token: int) -> None:
    """In "a girl bikes on a path" bikes is a verb, but the parser sees a compound noun."""
    subject = token - 1
    if subject not in tree.below(token, {"amod", "compound"}) or not _may_be_verb(tree, token):
        return
    if not tree.is_noun(subject):
        return
    for child in tree.children[token]:
        if child < subject:
            tree.attach(child, subject, tree.deps[child])
    if tree.deps[token] in {"pobj", "dobj"}:  # The noun's role; the verb joins the root.
        root = tree.root(token)
        tree.attach(subject, tree.heads[token], tree.deps[token])
        tree.attach(token, root, "conj" if tree.is_verb(root) else "acl")
        if token + 1 < len(tree) and tree.deps[token + 1] == "prep":
            tree.attach(token + 1, token, "prep")
    else:
        if tree.deps[token] == "nsubj" and tree.tags[tree.heads[token]] == "VBG":
            _leads(tree, token, subject)
        tree.attach(subject, token, "nsubj")
    for child in tree.below(token, {"appos"}):
        tree.deps[child] = "dobj"
    tree.tags[token] = "VBZ"


def _leads(tree: Tree, verb: int, subject: int) -> None:
    """In "a rooftop skater flies high doing a trick" the participle completes the verb."""
    participle = tree.heads[verb]
    if tree.below(participle, AUXILIARIES):
        return
    for other in tree.below(participle, _SUBJECTS):
        if other == subject - 1 and tree.is_noun(other):
            tree.attach(other, subject, "compound")
    tree.replace(participle, verb)
    tree.deps[participle] = "advcl"


def _may_be_verb(tree: Tree, token: int) -> bool:
    """Return whether `token` agrees with the noun before it as its verb."""
    tag = tree.tags[token]
    if tag in {"VBZ", "VBP"} or tree.kinds[token] == "VB":
        return True
    if "VB" not in tree.kinds[token]:
        return False
    acts = tree.lemmas[token] in lexicon.ACTIONS or tree.is_animate(token - 1)
    if tag == "NNS" and _is_one(tree, token):
        return acts or tree.deps[token] == "ROOT"  # "A girl bikes": no plural follows "a".
    plural = tag == "NNS" or tree.tags[token - 1] == "NNS"
    if (
        plural
        and tree.lemmas[token - 1] in _WORN_OR_BODY
        and tree.lemmas[token] not in lexicon.WORN
    ):
        # "A girl with tears on her face cries": the caption has no verb before.
        return acts and not any(other in FINITE for other in tree.tags[:token])
    if tree.deps[token] != "ROOT" or tag not in {"NN", "NNS"}:
        return False
    if tag == "NNS":  # "Person canoes in a lake".
        acts = tree.is_animate(token - 1) and not tree.below(token, {"nummod"})
        return acts and not any(other in FINITE for other in tree.tags)
    # "Three dogs sleep", "a couple dance": no singular follows "three", and a group may act.
    if tree.lemmas[token - 1] in lexicon.QUANTITIES and tree.is_animate(token - 1):
        return True
    return tree.tags[token - 1] == "NNS" and bool(tree.below(token, {"nummod"}))


def _is_one(tree: Tree, token: int) -> bool:
    """Return whether an article or pronoun says that there is one of the noun before `token`."""
    if any(tree.words[t] in _ONE for t in tree.below(token, {"det"})):
        return True
    first = token - 1
    if tree.tags[first] == "NNS" or tree.lemmas[first] in lexicon.QUANTITIES:
        return False
    while first > 0 and (tree.is_noun(first) or tree.tags[first] == "JJ"):
        first -= 1
    return tree.words[first] in _ONE


def _clause_has_verb(tree: Tree, token: int) -> None:
    """In "four men ski on a hill" a root or clause with a subject is a verb, whatever its tag."""
    if tree.tags[token][:2] in {"JJ", "RB", "VB"} or tree.deps[token] not in _CLAUSE_HEADS:
        return
    if "VB" in tree.kinds[token] or (tree.deps[token] == "ROOT" and len(tree.kinds[token]) != 2):
        subject = tree.below(token, {"nsubj"})
        if subject and subject[-1] < token and not tree.below(token, BEFORE_HEAD):
            tree.tags[token] = "VBP"


def _joined_noun_is_verb(tree: Tree, token: int) -> None:
    """In "a boy runs and jumps" and "is running and jumping" both words are verbs."""
    if not tree.is_noun(token) or tree.deps[token] not in {"conj", "acl"}:
        return
    head, word = tree.heads[token], tree.words[token]
    bare = all(tree.deps[child] in _AROUND_VERBS for child in tree.children[token])
    if not bare or head > token:
        return
    if tree.tags[token] == "NNS" and tree.deps[token] == "conj" and tree.tags[head] == "VBZ":
        tree.tags[token] = "VBZ"
    elif is_participle(word) and (tree.tags[head] == "VBG" or tree.deps[token] == "acl"):
        tree.tags[token], tree.lemmas[token] = "VBG", participle_base(word)


def only_noun(tree: Tree, token: int) -> None:
    """ "Goalie" is no verb, so that "hockey" before it is no subject; "terrier" is no adjective."""
    kinds, tag, head = tree.kinds[token], tree.tags[token], tree.heads[token]
    if "NN" not in kinds or tree.words[token] in _NO_NOUNS or tree.words[token].endswith(_FORMS):
        return
    if tag.startswith("VB") and "VB" not in kinds:
        _to_noun(tree, token)
    elif (tag in {"JJ", "JJR", "UH"} and "JJ" not in kinds) or (
        tag == "RB" and kinds == "NN" and tree.words[token] != "upside"
    ):
        tree.tags[token], tree.lemmas[token] = "NN", tree.words[token]
        if tag == "RB" and token and tree.is_noun(token - 1):
            for subject in tree.below(token, {"nsubj"}) if head == token else ():
                tree.attach(subject, subject, "ROOT")
            tree.attach(token, token - 1, "amod")
            head = token - 1
        if tree.deps[token] not in {"amod", "intj"}:
            return
        if head > token:
            tree.deps[token] = "nsubj" if tree.is_verb(head) else "compound"
        elif head == token - 1 and tree.is_noun(head):  # "A fire hydrant".
            tree.replace(head, token)
            tree.deps[head] = "compound"


def _to_noun(tree: Tree, token: int) -> None:
    """Make a noun of a word that the tagger took for a verb; a subject before is a compound."""
    tree.tags[token] = "NNS" if tree.words[token] != tree.lemmas[token] else "NN"
    for subject in tree.below(token, {"nsubj"}):
        if subject == token - 1 and tree.is_noun(subject):
            tree.deps[subject] = "compound"
    for child in tree.below(token, _CLAUSES):  # "A suit and tie standing on a chair".
        if is_participle(tree.words[child]):
            tree.tags[child], tree.deps[child] = "VBG", "acl"
            tree.lemmas[child] = participle_base(tree.words[child])
            for link in [t for t in tree.below(token, {"prep"}) if t > child]:
                tree.attach(link, child, "prep")


def _one_noun(tree: Tree, token: int) -> None:
    """In "a microwave oven sits on a shelf" the parser sees two nouns where there is one."""
    first, word, role = token - 1, tree.words[token], tree.deps[token]
    if first < 0 or not tree.is_noun(first) or not word.isalpha() or word.endswith("ing"):
        return
    if role == "acl" and tree.heads[token] == first:
        tree.replace(first, token)
        tree.deps[first] = "compound"
    elif role in _SUBJECTS and first in tree.below(tree.heads[token], _SUBJECTS):
        for child in tree.below(first, BEFORE_HEAD):
            tree.attach(child, token, tree.deps[child])
        tree.attach(first, token, "compound")


def _compound_is_verb(tree: Tree, token: int) -> None:
    """In "a fire hydrant sprays water" the parser sees a compound of all words."""
    subject, head = token - 1, tree.heads[token]
    if tree.deps[token] not in COMPOUND or head < token or subject < 0:
        return
    if not tree.is_noun(subject) or tree.tags[subject] not in _SINGULAR:
        return
    spoken = tree.tags[token] == "VBZ" and tree.words[token].endswith("s")
    named = tree.words[token] in _ACTS_ON and tree.heads[subject] in (token, head)
    if not named and not (spoken and subject in tree.below(token, _SUBJECTS)):
        return
    first = tree.start(head)
    tree.replace(head, token)
    for clause in tree.below(head, {"advcl"}):
        tree.attach(clause, token, "advcl")
    for child in range(first, subject):
        if tree.heads[child] == token:
            tree.attach(child, subject, "compound" if tree.is_noun(child) else tree.deps[child])
    tree.attach(subject, token, "nsubj")
    tree.attach(head, token, "dobj")
    tree.tags[token] = "VBZ"


def _verb_is_noun(tree: Tree, token: int) -> None:
    """In "a toilet, sink and tub" and "a bathroom sink near a tub" the sink does not sink.

    A bare form agrees with no singular before it; a form in "-s" of a word that is no action
    agrees, but only with the article "a" and without another verb after it.
    """
    tag = tree.tags[token]
    if tag not in {"VB", "VBP", "VBZ"} or tree.kinds[token] == "VB":
        return
    if tree.below(token, AUXILIARIES) or tree.lemmas[token] in _LINKING:
        return
    head, subject = tree.heads[token], tree.below(token, _SUBJECTS)
    if not subject:
        bare = tag in BARE or tree.lemmas[token] not in lexicon.ACTIONS
        if bare and tree.deps[token] == "conj" and tree.is_noun(head):
            _to_noun(tree, token)
    elif subject == [token - 1] and tree.tags[token - 1] in _SINGULAR and not _acts(tree, token):
        _to_noun(tree, token)


def _object_of_participle(tree: Tree, token: int) -> None:
    """In "a giraffe eating leaves" the giraffe does not leave."""
    verb = token - 1
    if tree.tags[token] not in FINITE or verb < 1 or tree.words[verb] not in lexicon.TRANSITIVES:
        return
    noun = "NN" in tree.kinds[token] and tree.lemmas[token] not in _LINKING
    if noun and tree.heads[verb] in tree.below(token, {"nsubj"}):
        tree.replace(token, tree.heads[verb])
        tree.attach(token, verb, "dobj")
        tree.tags[token] = "NNS"


def _acts(tree: Tree, verb: int) -> bool:
    """Return whether the noun before `verb`, a singular, can be its subject."""
    noun = verb - 1
    if tree.is_animate(noun) or tree.words[noun] in lexicon.PRONOUNS or tree.below(verb, _OF_VERBS):
        return True
    if tree.tags[verb] in BARE:
        return False
    single = any(tree.words[t] in {"a", "an"} for t in tree.below(noun, {"det"}))
    return tree.lemmas[verb] in lexicon.ACTIONS or (
        single and tree.tags[verb + 1 : verb + 2] != ["VBZ"]
    )


def _adjective_after_noun(tree: Tree, token: int) -> None:
    """In "a surfer airborne over a wave" the parser makes the surfer a subject without a verb."""
    subject = tree.below(token, {"nsubj"})
    if tree.tags[token] == "JJ" and subject == [token - 1] and tree.is_noun(token - 1):
        tree.replace(token, token - 1)
        tree.deps[token] = "amod"


def _state_in_past(tree: Tree, token: int) -> None:
    """In "horses gathered around a tree" they are gathered: the word is an adjective, too."""
    if tree.tags[token] not in {"VBD", "VBN"} or not tree.kinds[token].startswith("JJ"):
        return
    if tree.below(token, AUXILIARIES | {"dobj", "auxpass"}):
        return
    for subject in tree.below(token, {"nsubj"}):
        tree.tags[token], tree.deps[subject] = "VBN", "nsubjpass"


VERB_OR_NOUN: tuple[Repair, ...] = (
    Repair(_verb_has_base, tags=VERBS),
    Repair(_noun_is_verb),
    Repair(_clause_has_verb),
    Repair(_joined_noun_is_verb, tags=NOUNS),
    Repair(_object_of_participle, tags=FINITE),
    Repair(_verb_is_noun, tags=BARE | {"VBZ"}),
    Repair(_one_noun, tags=NOUNS),
    Repair(_compound_is_verb, tags=frozenset({"NNS", "VBZ"})),
    Repair(verb_after_clothes, tags=frozenset({"NN", "NNS"})),
    Repair(_adjective_after_noun, tags=frozenset({"JJ"})),
    Repair(_state_in_past, tags=frozenset({"VBD", "VBN"})),
)
