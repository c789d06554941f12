"""Kinds of sentences: first those with one clause, then those with several clauses, subjects or
objects.

Each function takes a `Draft` and returns the sentence without its full stop. A function raises
`Inapplicable` if the scene has nothing that this kind of sentence could say.
"""

from manymatch.batch.scene_graph import Relation
from manymatch.scenes import choice
from manymatch.scenes.choice import add_place, background, clothing, listed, subject_phrase
from manymatch.scenes.forms import ATTRIBUTES
from manymatch.scenes.kinds import ACTIVITIES, VERBS, article
from manymatch.scenes.phrases import Draft, Inapplicable


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
        return add_place(draft, sentence, [subject])
    return add_place(draft, sentence, [subject], predicate.activity, first=True)


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
        return add_place(draft, sentence, mentions)
    return add_place(draft, sentence, mentions, first=True) if draft.chance(0.5) else sentence


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
        return add_place(draft, f"{subject.text} {link}{state}", [subject], ACTIVITIES[state])
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
    subject = subject_phrase(draft, first.subject)
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
    if "colour" in draft.unused_attributes(object):
        return f"{inner} is {draft.describe(object, 'colour')}"
    return f"there is {inner}"


def joint_subjects(draft: Draft) -> str:
    """`A man and a dog are next to a car`."""
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
    subject = subject_phrase(draft, first.subject)
    first_predicate = draft.predicate(first, subject, finite=False).text
    second_predicate = draft.predicate(second, subject, finite=False).text
    return f"{subject.text} is {first_predicate} and {second_predicate}"


def two_clauses(draft: Draft) -> str:
    """`A dog is chasing a cat and a bird is above a house`."""
    first = choice.relation(draft)
    second = choice.relation(
        draft, lambda t: not {t.subject, t.object} & {first.subject, first.object}
    )
    clauses = []
    for tie in (first, second):
        subject = subject_phrase(draft, tie.subject)
        words = draft.predicate(tie, subject, finite=True).text
        clauses.append(f"{subject.text} {words}")
    return draft.rng.choice((" and ", " while ", ", and ")).join(clauses)


def count(draft: Draft) -> str:
    """`Two dogs are running`, `There are three balls in the park`, `Two people next to a bus`."""
    group, noun = choice.group(draft)
    shared = _shared_attributes(draft, group)
    doing = shared.get("state") in ACTIVITIES and draft.chance(0.5)
    state = shared.pop("state") if doing else ""
    many = draft.mention_many(group, noun, {n: v for n, v in shared.items() if draft.chance(0.5)})
    if doing:
        # Without a place the verb is an attribute; with a place it is part of the relation.
        draft.form.objects[many.form_object].state = state
        sentence = f"{many.text} are {state}"
        if draft.chance(0.6):
            return add_place(draft, sentence, [many], ACTIVITIES[state])
        draft.attributes[many.node].append(state)
        return sentence
    common = [tie for tie in choice.relations(draft) if choice.distributes(draft, tie, group)]
    if common and draft.chance(0.7):
        tie = draft.rng.choice(common)
        words = draft.predicate(tie, many, finite=draft.chance(0.6)).text
        return f"{many.text} {words}"
    there = f"there are {many.text}"
    return add_place(draft, there, [many]) if draft.chance(0.6) else there


def _shared_attributes(draft: Draft, group: list[int]) -> dict[str, str]:
    """Return the attributes that all members have."""
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
        return listed([draft.mention(k) for k in things])
    _, _, node = background(draft)
    mentions = [draft.mention(k) for k in things]
    draft.edges += [Relation(node, "with", mention.node) for mention in mentions]
    word = draft.objects[node]
    return f"{article(word)} {word} with {listed(mentions)}"
