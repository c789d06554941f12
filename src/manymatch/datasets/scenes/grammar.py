"""Kinds of sentences: each tells a part of the scene in its own construction.

A frame takes a `Draft` and returns the sentence without its full stop; it raises `Inapplicable`
where the scene holds nothing to tell in that way. Truth conventions: see the package's docstring.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from manymatch.datasets.scenes.forms import ATTRIBUTES, Form
from manymatch.datasets.scenes.kinds import KINDS, PEOPLE
from manymatch.datasets.scenes.phrases import Draft, Focus, Inapplicable, Mention
from manymatch.datasets.scenes.words import ACTIVITIES, VERBS, article
from manymatch.datasets.scenes.world import Scene, Tie
from manymatch.scene_graphs.graph import Relation, SceneGraph

Frame = Callable[[Draft], str]

_WEIGHTS = {
    **dict.fromkeys(("hold", "ride", "pull", "push", "kick", "fly", "walk"), 3.0),
    **dict.fromkeys(("left of", "right of", "in front of", "behind", "next to", "on", "in"), 2.0),
    "chase": 4.0,
    "look at": 1.5,
    "wear": 1.5,
    "above": 1.2,
    "below": 1.2,
    "with": 0.4,
}
"""How often each relation is told where there is a choice."""
_CLOTHING = ("shirt", "dress")


@dataclass(frozen=True)
class Sentence:
    """A caption with its logical form, the scene graph of its text, and its frame's name."""

    text: str
    form: Form
    graph: SceneGraph
    frame: str


def tell(scene: Scene, rng: Random, focus: Focus = Focus()) -> Sentence:  # noqa: B008
    """One true caption of `scene`."""
    names, weights = list(FRAMES), [weight for _, weight in FRAMES.values()]
    while True:
        name = rng.choices(names, weights)[0]
        draft = Draft(scene, rng, focus)
        try:
            text = FRAMES[name][0](draft)
        except Inapplicable:
            continue
        text = text[0].upper() + text[1:] + ("." if rng.random() < 0.9 else "")
        return Sentence(text, draft.form, draft.graph(), name)


# --- what to tell ---------------------------------------------------------------------------


def _ties(draft: Draft, wanted: Callable[[Tie], bool] = lambda tie: True) -> list[Tie]:
    """Relations worth telling; those of the focus alone, if there are any."""
    things = draft.scene.things

    def telling(tie: Tie) -> bool:
        clothing = (
            things[tie.object].spec.kind in _CLOTHING or things[tie.subject].spec.kind in _CLOTHING
        )
        return wanted(tie) and (tie.relation == "wear" or not clothing)

    ties = [tie for tie in draft.scene.relations if telling(tie)]
    for enough in (2, 1):
        focused = [t for t in ties if len({t.subject, t.object} & {*draft.focus.objects}) >= enough]
        if focused:
            return focused
    return ties


def _tie(draft: Draft, wanted: Callable[[Tie], bool] = lambda tie: True) -> Tie:
    ties = _ties(draft, wanted)
    if not ties:
        raise Inapplicable
    names = sorted({tie.relation for tie in ties})
    name = draft.rng.choices(names, [_WEIGHTS[name] for name in names])[0]
    return draft.rng.choice([tie for tie in ties if tie.relation == name])


def _transitive(tie: Tie) -> bool:
    return tie.relation in VERBS


def _locative(tie: Tie) -> bool:
    return tie.relation not in VERBS and tie.relation != "with"


def _nouns(draft: Draft, count: int) -> list[int]:
    """Different objects, those of the focus first."""
    things = draft.scene.things
    rest = [k for k, thing in enumerate(things) if thing.spec.kind not in _CLOTHING]
    if len(rest) < count:
        raise Inapplicable
    drawn = draft.rng.sample(rest, len(rest))
    drawn.sort(key=lambda k: k not in draft.focus.objects)
    return drawn[:count]


def _subject(draft: Draft, thing: int) -> Mention:
    """A noun phrase that leaves the state to the predicate now and then."""
    return draft.mention(thing, state=draft.chance(0.4))


def _dressed(draft: Draft, subject: Mention, relation: str, share: float = 0.3) -> str:
    wanted = draft.chance(share)
    person = draft.scene.things[subject.thing].spec.kind in PEOPLE
    return draft.clothes(subject) if wanted and person and relation != "wear" else ""


def _set_in(draft: Draft, sentence: str, nodes: list[Mention], verb: str = "") -> str:
    """`In a park, SENTENCE`; the place belongs to the main verb's subjects."""
    phrase, preposition, node = draft.background()
    for mention in nodes:
        draft.edge(mention, f"{verb} {preposition}".strip(), node)
    return f"{phrase}, {sentence}"


def _ending_in(draft: Draft, sentence: str, mentions: list[Mention], verb: str = "") -> str:
    """`SENTENCE in a park`."""
    phrase, preposition, node = draft.background()
    for mention in mentions:
        draft.edge(mention, f"{verb} {preposition}".strip(), node)
    return f"{sentence} {phrase}"


def _intransitive_lemma(draft: Draft, words: str) -> str:
    """The lemma of the activity that heads a predicate such as `is sleeping under a table`."""
    return next((ACTIVITIES[word] for word in words.split()[:2] if word in ACTIVITIES), "")


# --- frames ---------------------------------------------------------------------------------


def clause(draft: Draft) -> str:
    """`A man in a red shirt is riding a horse`, `In a park, a dog is sleeping under a table`."""
    tie = _tie(draft)
    subject = _subject(draft, tie.subject)
    clothes = _dressed(draft, subject, tie.relation)
    words, _ = draft.predicate(tie, subject, finite=True)
    sentence = f"{subject.text}{clothes} {words}"
    if not draft.chance(0.3):
        return sentence
    lemma = "" if _transitive(tie) else _intransitive_lemma(draft, words)
    if _transitive(tie) and draft.chance(0.4):
        return _ending_in(draft, sentence, [subject])
    return _set_in(draft, sentence, [subject], lemma)


def fragment(draft: Draft) -> str:
    """`A dog chasing a small cat`, `A red car behind a tree`."""
    tie = _tie(draft)
    subject = _subject(draft, tie.subject)
    words, _ = draft.predicate(tie, subject, finite=False)
    return f"{subject.text} {words}"


def passive(draft: Draft) -> str:
    """`A cart is being pulled by a horse`, `An umbrella held by a man`."""
    tie = _tie(draft, lambda tie: any(verb.past for verb in VERBS.get(tie.relation, ())))
    verb = draft.rng.choice([verb for verb in VERBS[tie.relation] if verb.past])
    object = draft.mention(tie.object)
    finite = draft.chance(0.6)
    words = draft.rng.choice((f"is {verb.past}", f"is being {verb.past}")) if finite else verb.past
    subject = draft.mention(tie.subject)
    draft.relate(subject, tie.relation, object, verb.lemma)
    return f"{object.text} {words} by {subject.text}{_dressed(draft, subject, tie.relation, 0.2)}"


def existential(draft: Draft) -> str:
    """`There is a dog under a table`, `There is a man riding a horse`."""
    tie = _tie(draft)
    subject = draft.mention(tie.subject, state=draft.chance(0.4), the=0.0)
    words, _ = draft.predicate(tie, subject, finite=False)
    return f"there is {subject.text} {words}"


def presence(draft: Draft) -> str:
    """`There is a red car in the park`, `On the beach, there are a dog and a ball`."""
    mentions = [draft.mention(k, the=0.0) for k in _nouns(draft, draft.rng.choice((1, 2)))]
    be = "is" if len(mentions) == 1 else "are"
    sentence = f"there {be} {_listed(mentions)}"
    if len(mentions) == 1:
        return _ending_in(draft, sentence, mentions)
    return _set_in(draft, sentence, mentions) if draft.chance(0.5) else sentence


def inversion(draft: Draft) -> str:
    """`On a table there is a lamp`, `Behind the car is a small tree`."""
    tie = _tie(draft, _locative)
    preposition = draft.preposition(tie)
    object = draft.mention(tie.object)
    subject = draft.mention(tie.subject, the=0.0)
    draft.relate(subject, tie.relation, object, preposition)
    verb = draft.rng.choice(("there is", "is"))
    return f"{preposition} {object.text} {verb} {subject.text}"


def relative_subject(draft: Draft) -> str:
    """`A man who is wearing a hat is riding a horse`."""
    first = _tie(draft, _transitive)
    second = _tie(draft, lambda t: t.subject == first.subject and t.object != first.object)
    subject = draft.mention(first.subject)
    inner, _ = draft.predicate(first, subject, finite=True)
    outer, _ = draft.predicate(second, subject, finite=True)
    return f"{subject.text} {draft.who(subject)} {inner} {outer}"


def relative_object(draft: Draft) -> str:
    """`A dog is looking at a car that is to the left of a tree`."""
    first = _tie(draft)
    second = _tie(
        draft, lambda t: t.subject == first.object and t.object not in (first.subject, first.object)
    )
    subject = _subject(draft, first.subject)
    outer, object = draft.predicate(first, subject, finite=draft.chance(0.7))
    inner, _ = draft.predicate(second, object, finite=True)
    return f"{subject.text} {outer} {draft.who(object)} {inner}"


def gap(draft: Draft) -> str:
    """`The kite that a girl is flying is red`, `There is a ball that a boy is holding`."""
    tie = _tie(draft, _transitive)
    verb = draft.verb(tie.relation)
    object = draft.mention(tie.object, the=1.0)
    subject = draft.mention(tie.subject)
    draft.relate(subject, tie.relation, object, verb.lemma)
    inner = f"{object.text} that {subject.text} is {verb.ing}"
    if "colour" in draft.untold(object):
        return f"{inner} is {draft.describe(object, 'colour')}"
    return f"there is {inner}"


def state_clause(draft: Draft) -> str:
    """`A horse that is running`, `A small dog is sleeping in the park`, `There is an open box`."""
    things = [k for k in _nouns(draft, 1) if draft.scene.things[k].spec.state]
    if not things:
        raise Inapplicable
    subject = draft.mention(things[0], state=False)
    state = draft.scene.things[subject.thing].spec.state or ""
    if state in ACTIVITIES and draft.chance(0.5):
        draft.form.objects[subject.told].state = state
        link = draft.rng.choice(("is ", ""))
        return _ending_in(draft, f"{subject.text} {link}{state}", [subject], ACTIVITIES[state])
    word = draft.describe(subject, "state")
    if draft.chance(0.5):
        return f"{subject.text} {draft.who(subject)} is {word}"
    return f"{subject.text} is {word}"


def predicative(draft: Draft) -> str:
    """`The dog next to a car is brown`, `The umbrella held by a woman is small and red`."""
    tie = _tie(draft, lambda tie: draft.scene.things[tie.subject].spec.colour is not None)
    subject = draft.mention(tie.subject, bare=True, the=1.0)
    inner = ""
    if draft.chance(0.6):
        words, _ = draft.predicate(tie, subject, finite=False)
        inner = f" {words}"
    told = draft.untold(subject)
    if "size" in told and draft.chance(0.4):
        told_words = f"{draft.describe(subject, 'size')} and {draft.describe(subject, 'colour')}"
    else:
        told_words = draft.describe(subject, "colour")
    return f"{subject.text}{inner} is {told_words}"


def possession(draft: Draft) -> str:
    """`The girl's dress is red`, `A boy has a blue ball`."""
    tie = _tie(draft, lambda tie: tie.relation in ("wear", "hold"))
    garment = tie.relation == "wear"
    if garment and draft.scene.things[tie.object].spec.colour and draft.chance(0.6):
        owner = draft.mention(tie.subject, the=1.0)
        object = draft.mention(tie.object, bare=True, the=1.0)
        draft.relate(owner, "wear", object, "have")
        owned = object.text.removeprefix("the ")
        return f"{owner.text}'s {owned} is {draft.describe(object, 'colour')}"
    if garment:
        raise Inapplicable
    owner = draft.mention(tie.subject)
    object = draft.mention(tie.object)
    draft.relate(owner, "with", object, "have")
    return f"{owner.text} has {object.text}"


def joint_subjects(draft: Draft) -> str:
    """`A man and a dog are next to a car`: both of them."""
    tie = _tie(draft, lambda tie: tie.relation != "with")
    others = [
        t.subject
        for t in _ties(draft)
        if (t.relation, t.object) == (tie.relation, tie.object) and t.subject != tie.subject
    ]
    if not others:
        raise Inapplicable
    first = draft.mention(tie.subject)
    second = draft.mention(draft.rng.choice(others))
    if _transitive(tie):
        verb = draft.verb(tie.relation)
        words, label = f"are {verb.ing}", verb.lemma
    else:
        label = draft.preposition(tie)
        words = f"are {label}"
    object = draft.mention(tie.object)
    for subject in (first, second):
        draft.relate(subject, tie.relation, object, label)
    return f"{first.text} and {second.text} {words} {object.text}"


def joint_predicates(draft: Draft) -> str:
    """`A girl is wearing a hat and holding a balloon`."""
    first = _tie(draft, _transitive)
    second = _tie(
        draft,
        lambda t: (
            _transitive(t)
            and t.subject == first.subject
            and (t.object, t.relation) != (first.object, first.relation)
            and t.object != first.object
        ),
    )
    subject = _subject(draft, first.subject)
    one, _ = draft.predicate(first, subject, finite=False)
    two, _ = draft.predicate(second, subject, finite=False)
    return f"{subject.text} is {one} and {two}"


def two_clauses(draft: Draft) -> str:
    """`A dog is chasing a cat and a bird is above a house`."""
    first = _tie(draft)
    second = _tie(draft, lambda t: not {t.subject, t.object} & {first.subject, first.object})
    clauses = []
    for tie in (first, second):
        subject = _subject(draft, tie.subject)
        words, _ = draft.predicate(tie, subject, finite=True)
        clauses.append(f"{subject.text} {words}")
    return draft.rng.choice((" and ", " while ", ", and ")).join(clauses)


def count(draft: Draft) -> str:
    """`Two dogs are running`, `There are three balls in the park`, `Two people next to a bus`."""
    group, noun = _group(draft)
    specs = [draft.scene.things[k].spec for k in group]
    shared = {
        name: value
        for name in ATTRIBUTES
        if (value := getattr(specs[0], name)) and {getattr(s, name) for s in specs} == {value}
    }
    doing = shared.get("state") in ACTIVITIES and draft.chance(0.5)
    state = shared.pop("state") if doing else ""
    many = draft.mention_many(group, noun, {n: v for n, v in shared.items() if draft.chance(0.5)})
    if doing:
        draft.form.objects[many.told].state = state
        return _ending_in(draft, f"{many.text} are {state}", [many], ACTIVITIES[state])
    common = [tie for tie in _ties(draft) if _distributes(draft, tie, group)]
    if common and draft.chance(0.7):
        tie = draft.rng.choice(common)
        words, _ = draft.predicate(tie, many, finite=draft.chance(0.6))
        return f"{many.text} {words}"
    there = f"there are {many.text}"
    return _ending_in(draft, there, [many]) if draft.chance(0.6) else there


def _group(draft: Draft) -> tuple[list[int], str]:
    """Two to four objects that share a noun, and that noun."""
    groups: dict[str, list[int]] = {}
    for k, thing in enumerate(draft.scene.things):
        if thing.spec.kind not in _CLOTHING:
            for noun in (thing.spec.kind, *KINDS[thing.spec.kind].hypernyms):
                groups.setdefault(noun, []).append(k)
    nouns = [noun for noun, members in groups.items() if len(members) > 1]
    if not nouns:
        raise Inapplicable
    noun = draft.rng.choice(nouns)
    members = groups[noun]
    return draft.rng.sample(members, draft.rng.randint(2, min(4, len(members)))), noun


def _distributes(draft: Draft, tie: Tie, group: list[int]) -> bool:
    """Whether every member stands in the relation to the same object outside the group."""
    relations = draft.scene.relations
    return (
        tie.subject == group[0]
        and tie.object not in group
        and all(Tie(k, tie.relation, tie.object) in relations for k in group)
    )


def listing(draft: Draft) -> str:
    """`A dog, a red car and a house`, `A park with a tree and a bench`."""
    things = _nouns(draft, draft.rng.choice((2, 3)))
    if draft.chance(0.5) or draft.scene.background in ("sea", "snow"):
        return _listed([draft.mention(k) for k in things])
    _, _, node = draft.background()
    mentions = [draft.mention(k) for k in things]
    draft.edges += [Relation(node, "with", mention.node) for mention in mentions]
    place = draft.objects[node]
    return f"{article(place)} {place} with {_listed(mentions)}"


def _listed(mentions: list[Mention]) -> str:
    *most, last = [mention.text for mention in mentions]
    return f"{', '.join(most)} and {last}" if most else last


FRAMES: dict[str, tuple[Frame, float]] = {
    frame.__name__: (frame, weight)
    for frame, weight in (
        (clause, 4.0), (fragment, 3.0), (passive, 1.5), (existential, 1.5), (presence, 1.0),
        (inversion, 1.0), (relative_subject, 1.0), (relative_object, 1.5), (gap, 0.5),
        (state_clause, 1.0), (predicative, 1.0), (possession, 0.5), (joint_subjects, 1.0),
        (joint_predicates, 1.0), (two_clauses, 1.2), (count, 1.2), (listing, 0.8),
    )
}  # fmt: skip
