"""Kinds of sentences with one clause.

Each function takes a `Draft` and returns the sentence without its full stop. A function raises
`Inapplicable` if the scene has nothing that this kind of sentence could say.
"""

from __future__ import annotations

from manymatch.scenes import choice
from manymatch.scenes.phrases import Draft, Inapplicable
from manymatch.scenes.sentence_parts import (
    clothing,
    listed,
    subject_phrase,
    with_place_first,
    with_place_last,
)
from manymatch.scenes.words import ACTIVITIES, VERBS


def clause(draft: Draft) -> str:
    """`A man in a red shirt is riding a horse`, `In a park, a dog is sleeping under a table`."""
    tie = choice.relation(draft)
    subject = subject_phrase(draft, tie.subject)
    clothes = clothing(draft, subject, tie.relation)
    predicate = draft.predicate(tie, subject, finite=True)
    sentence = f"{subject.text}{clothes} {predicate.text}"
    if not draft.chance(0.3):
        return sentence
    if choice.transitive(tie) and draft.chance(0.4):
        return with_place_last(draft, sentence, [subject])
    return with_place_first(draft, sentence, [subject], predicate.activity)


def fragment(draft: Draft) -> str:
    """`A dog chasing a small cat`, `A red car behind a tree`."""
    tie = choice.relation(draft)
    subject = subject_phrase(draft, tie.subject)
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
    return f"{object.text} {words} by {subject.text}{clothing(draft, subject, tie.relation, 0.2)}"


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
    sentence = f"there {be} {listed(mentions)}"
    if len(mentions) == 1:
        return with_place_last(draft, sentence, mentions)
    return with_place_first(draft, sentence, mentions) if draft.chance(0.5) else sentence


def inversion(draft: Draft) -> str:
    """`On a table there is a lamp`, `Behind the car is a small tree`."""
    tie = choice.relation(draft, choice.locative)
    preposition = draft.preposition(tie)
    object = draft.mention(tie.object)
    subject = draft.mention(tie.subject, the=0.0)
    draft.relate(subject, tie.relation, object, preposition)
    verb = draft.rng.choice(("there is", "is"))
    return f"{preposition} {object.text} {verb} {subject.text}"


def state_clause(draft: Draft) -> str:
    """`A horse that is running`, `A small dog is sleeping in the park`, `There is an open box`."""
    things = [k for k in choice.things(draft, 1) if draft.scene.things[k].spec.state]
    if not things:
        raise Inapplicable
    subject = draft.mention(things[0], state=False)
    state = draft.scene.things[subject.thing].spec.state or ""
    if state in ACTIVITIES and draft.chance(0.5):
        draft.form.objects[subject.form_object].state = state
        link = draft.rng.choice(("is ", ""))
        return with_place_last(draft, f"{subject.text} {link}{state}", [subject], ACTIVITIES[state])
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
    if "size" in draft.unused_attributes(subject) and draft.chance(0.4):
        described = f"{draft.describe(subject, 'size')} and {draft.describe(subject, 'colour')}"
    else:
        described = draft.describe(subject, "colour")
    return f"{subject.text}{inner} is {described}"


def possession(draft: Draft) -> str:
    """`The girl's dress is red`, `A boy has a blue ball`."""
    tie = choice.relation(draft, lambda tie: tie.relation in ("wear", "hold"))
    garment = tie.relation == "wear"
    if garment and draft.scene.things[tie.object].spec.colour and draft.chance(0.6):
        possessor = draft.mention(tie.subject, the=1.0)
        object = draft.mention(tie.object, bare=True, the=1.0)
        draft.relate(possessor, "wear", object, "have")
        owned = object.text.removeprefix("the ")
        return f"{possessor.text}'s {owned} is {draft.describe(object, 'colour')}"
    if garment:
        raise Inapplicable
    possessor = draft.mention(tie.subject)
    object = draft.mention(tie.object)
    draft.relate(possessor, "with", object, "have")
    return f"{possessor.text} has {object.text}"
