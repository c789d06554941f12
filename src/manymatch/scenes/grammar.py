"""Kinds of sentences: each tells a part of the scene in its own construction.

A frame takes a `Draft` and returns the sentence without its full stop; it raises `Inapplicable`
where the scene holds nothing to tell in that way. Truth conventions: see the package's docstring.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from manymatch.scene_graphs.graph import Relation, SceneGraph
from manymatch.scenes import choice
from manymatch.scenes.forms import ATTRIBUTES, Form
from manymatch.scenes.kinds import PEOPLE
from manymatch.scenes.phrases import Draft, Focus, Inapplicable, Mention
from manymatch.scenes.words import ACTIVITIES, VERBS, article
from manymatch.scenes.world import Scene

Frame = Callable[[Draft], str]


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


# --- parts of sentences -----------------------------------------------------------------


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


# --- frames ---------------------------------------------------------------------------------


def clause(draft: Draft) -> str:
    """`A man in a red shirt is riding a horse`, `In a park, a dog is sleeping under a table`."""
    tie = choice.relation(draft)
    subject = _subject(draft, tie.subject)
    clothes = _dressed(draft, subject, tie.relation)
    said = draft.predicate(tie, subject, finite=True)
    sentence = f"{subject.text}{clothes} {said.text}"
    if not draft.chance(0.3):
        return sentence
    if choice.transitive(tie) and draft.chance(0.4):
        return _ending_in(draft, sentence, [subject])
    return _set_in(draft, sentence, [subject], said.activity)


def fragment(draft: Draft) -> str:
    """`A dog chasing a small cat`, `A red car behind a tree`."""
    tie = choice.relation(draft)
    subject = _subject(draft, tie.subject)
    words = draft.predicate(tie, subject, finite=False).text
    return f"{subject.text} {words}"


def passive(draft: Draft) -> str:
    """`A cart is being pulled by a horse`, `An umbrella held by a man`."""
    tie = choice.relation(draft, lambda tie: any(verb.past for verb in VERBS.get(tie.relation, ())))
    verb = draft.rng.choice([verb for verb in VERBS[tie.relation] if verb.past])
    object = draft.mention(tie.object)
    finite = draft.chance(0.6)
    words = draft.rng.choice((f"is {verb.past}", f"is being {verb.past}")) if finite else verb.past
    subject = draft.mention(tie.subject)
    draft.relate(subject, tie.relation, object, verb.lemma)
    return f"{object.text} {words} by {subject.text}{_dressed(draft, subject, tie.relation, 0.2)}"


def existential(draft: Draft) -> str:
    """`There is a dog under a table`, `There is a man riding a horse`."""
    tie = choice.relation(draft)
    subject = draft.mention(tie.subject, state=draft.chance(0.4), the=0.0)
    words = draft.predicate(tie, subject, finite=False).text
    return f"there is {subject.text} {words}"


def presence(draft: Draft) -> str:
    """`There is a red car in the park`, `On the beach, there are a dog and a ball`."""
    mentions = [draft.mention(k, the=0.0) for k in choice.things(draft, draft.rng.choice((1, 2)))]
    be = "is" if len(mentions) == 1 else "are"
    sentence = f"there {be} {_listed(mentions)}"
    if len(mentions) == 1:
        return _ending_in(draft, sentence, mentions)
    return _set_in(draft, sentence, mentions) if draft.chance(0.5) else sentence


def inversion(draft: Draft) -> str:
    """`On a table there is a lamp`, `Behind the car is a small tree`."""
    tie = choice.relation(draft, choice.locative)
    preposition = draft.preposition(tie)
    object = draft.mention(tie.object)
    subject = draft.mention(tie.subject, the=0.0)
    draft.relate(subject, tie.relation, object, preposition)
    verb = draft.rng.choice(("there is", "is"))
    return f"{preposition} {object.text} {verb} {subject.text}"


def relative_subject(draft: Draft) -> str:
    """`A man who is wearing a hat is riding a horse`."""
    first = choice.relation(draft, choice.transitive)
    second = choice.relation(
        draft, lambda t: t.subject == first.subject and t.object != first.object
    )
    subject = draft.mention(first.subject)
    inner = draft.predicate(first, subject, finite=True).text
    outer = draft.predicate(second, subject, finite=True).text
    return f"{subject.text} {draft.who(subject)} {inner} {outer}"


def relative_object(draft: Draft) -> str:
    """`A dog is looking at a car that is to the left of a tree`."""
    first = choice.relation(draft)
    second = choice.relation(
        draft, lambda t: t.subject == first.object and t.object not in (first.subject, first.object)
    )
    subject = _subject(draft, first.subject)
    outer = draft.predicate(first, subject, finite=draft.chance(0.7))
    inner = draft.predicate(second, outer.object, finite=True).text
    return f"{subject.text} {outer.text} {draft.who(outer.object)} {inner}"


def gap(draft: Draft) -> str:
    """`The kite that a girl is flying is red`, `There is a ball that a boy is holding`."""
    tie = choice.relation(draft, choice.transitive)
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
    things = [k for k in choice.things(draft, 1) if draft.scene.things[k].spec.state]
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
    tie = choice.relation(
        draft, lambda tie: draft.scene.things[tie.subject].spec.colour is not None
    )
    subject = draft.mention(tie.subject, bare=True, the=1.0)
    inner = ""
    if draft.chance(0.6):
        words = draft.predicate(tie, subject, finite=False).text
        inner = f" {words}"
    told = draft.untold(subject)
    if "size" in told and draft.chance(0.4):
        told_words = f"{draft.describe(subject, 'size')} and {draft.describe(subject, 'colour')}"
    else:
        told_words = draft.describe(subject, "colour")
    return f"{subject.text}{inner} is {told_words}"


def possession(draft: Draft) -> str:
    """`The girl's dress is red`, `A boy has a blue ball`."""
    tie = choice.relation(draft, lambda tie: tie.relation in ("wear", "hold"))
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
    tie = choice.relation(draft, lambda tie: tie.relation != "with")
    others = [
        t.subject
        for t in choice.relations(draft)
        if (t.relation, t.object) == (tie.relation, tie.object) and t.subject != tie.subject
    ]
    if not others:
        raise Inapplicable
    first = draft.mention(tie.subject)
    second = draft.mention(draft.rng.choice(others))
    if choice.transitive(tie):
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
    first = choice.relation(draft, choice.transitive)
    second = choice.relation(
        draft,
        lambda t: (
            choice.transitive(t)
            and t.subject == first.subject
            and (t.object, t.relation) != (first.object, first.relation)
            and t.object != first.object
        ),
    )
    subject = _subject(draft, first.subject)
    one = draft.predicate(first, subject, finite=False).text
    two = draft.predicate(second, subject, finite=False).text
    return f"{subject.text} is {one} and {two}"


def two_clauses(draft: Draft) -> str:
    """`A dog is chasing a cat and a bird is above a house`."""
    first = choice.relation(draft)
    second = choice.relation(
        draft, lambda t: not {t.subject, t.object} & {first.subject, first.object}
    )
    clauses = []
    for tie in (first, second):
        subject = _subject(draft, tie.subject)
        words = draft.predicate(tie, subject, finite=True).text
        clauses.append(f"{subject.text} {words}")
    return draft.rng.choice((" and ", " while ", ", and ")).join(clauses)


def count(draft: Draft) -> str:
    """`Two dogs are running`, `There are three balls in the park`, `Two people next to a bus`."""
    group, noun = choice.group(draft)
    shared = _shared(draft, group)
    doing = shared.get("state") in ACTIVITIES and draft.chance(0.5)
    state = shared.pop("state") if doing else ""
    many = draft.mention_many(group, noun, {n: v for n, v in shared.items() if draft.chance(0.5)})
    if doing:
        # Without a place the verb is an attribute, with one it is part of the relation.
        draft.form.objects[many.told].state = state
        sentence = f"{many.text} are {state}"
        if draft.chance(0.6):
            return _ending_in(draft, sentence, [many], ACTIVITIES[state])
        draft.attributes[many.node].append(state)
        return sentence
    common = [tie for tie in choice.relations(draft) if choice.distributes(draft, tie, group)]
    if common and draft.chance(0.7):
        tie = draft.rng.choice(common)
        words = draft.predicate(tie, many, finite=draft.chance(0.6)).text
        return f"{many.text} {words}"
    there = f"there are {many.text}"
    return _ending_in(draft, there, [many]) if draft.chance(0.6) else there


def _shared(draft: Draft, group: list[int]) -> dict[str, str]:
    """The attributes that all members have."""
    first, *others = (draft.scene.things[k].spec for k in group)
    return {
        name: value
        for name in ATTRIBUTES
        if (value := getattr(first, name)) and all(getattr(s, name) == value for s in others)
    }


def listing(draft: Draft) -> str:
    """`A dog, a red car and a house`, `A park with a tree and a bench`."""
    things = choice.things(draft, draft.rng.choice((2, 3)))
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
