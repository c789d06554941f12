"""What a caption mentions: relations, single objects, groups, clothes and the background. The
objects in which twins differ are preferred."""

from collections.abc import Callable

from manymatch.scenes.kinds import (
    BACKGROUND_PHRASES,
    CLOTHES,
    KINDS,
    PEOPLE,
    VERBS,
    article,
    words_of,
)
from manymatch.scenes.phrases import Draft, Inapplicable, Mention
from manymatch.scenes.world import Tie

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
"""Weight of each relation in the draw."""
_CLOTHING = frozenset(CLOTHES.values())


def relations(draft: Draft, accepts: Callable[[Tie], bool] = lambda tie: True) -> list[Tie]:
    """Return the relations worth mentioning; only those of the focus, if there are any."""
    things = draft.scene.things

    def is_informative(tie: Tie) -> bool:
        clothing = (
            things[tie.object].spec.kind in _CLOTHING or things[tie.subject].spec.kind in _CLOTHING
        )
        return accepts(tie) and (tie.relation == "wear" or not clothing)

    ties = [tie for tie in draft.scene.relations if is_informative(tie)]
    for minimum in (2, 1):
        focused = [
            t for t in ties if len({t.subject, t.object} & {*draft.focus.objects}) >= minimum
        ]
        if focused:
            return focused
    return ties


def relation(draft: Draft, accepts: Callable[[Tie], bool] = lambda tie: True) -> Tie:
    """Draw one relation: first its name, then its objects."""
    ties = relations(draft, accepts)
    if not ties:
        raise Inapplicable
    names = sorted({tie.relation for tie in ties})
    name = draft.rng.choices(names, [_WEIGHTS[name] for name in names])[0]
    return draft.rng.choice([tie for tie in ties if tie.relation == name])


def transitive(tie: Tie) -> bool:
    return tie.relation in VERBS


def locative(tie: Tie) -> bool:
    return tie.relation not in VERBS and tie.relation != "with"


def things(draft: Draft, count: int) -> list[int]:
    """Draw `count` different objects, those of the focus first."""
    things = draft.scene.things
    rest = [k for k, thing in enumerate(things) if thing.spec.kind not in _CLOTHING]
    if len(rest) < count:
        raise Inapplicable
    drawn = draft.rng.sample(rest, len(rest))
    drawn.sort(key=lambda k: k not in draft.focus.objects)
    return drawn[:count]


def group(draft: Draft) -> tuple[list[int], str]:
    """Draw two to four objects that share a noun; return the objects and the noun."""
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


def distributes(draft: Draft, tie: Tie, group: list[int]) -> bool:
    """Return whether every member has this relation to the same object outside the group."""
    relations = draft.scene.relations
    return (
        tie.subject == group[0]
        and tie.object not in group
        and all(Tie(k, tie.relation, tie.object) in relations for k in group)
    )


def subject_phrase(draft: Draft, thing: int) -> Mention:
    """Mention the object; in 60% of cases its state is left to the predicate."""
    return draft.mention(thing, state=draft.chance(0.4))


def clothing(draft: Draft, subject: Mention, relation: str, share: float = 0.3) -> str:
    """Return ` in a red shirt` or similar for a share of the people, else an empty string.

    If `relation` is "wear", the sentence is about clothes already.
    """
    wanted = draft.chance(share)
    is_person = draft.scene.things[subject.thing].spec.kind in PEOPLE
    ties = draft.scene.ties
    worn = [tie for tie in ties if tie.subject == subject.thing and tie.relation == "wear"]
    if not (wanted and is_person and relation != "wear" and worn):
        return ""
    tie = draft.rng.choice(worn)
    if draft.scene.things[tie.object].spec.kind == "hat":
        words, label = draft.rng.choice((("wearing", "wear"), ("with", "with")))
    else:
        words, label = draft.rng.choice(
            (("wearing", "wear"), ("in", "in"), ("in", "in"), ("dressed in", "dress in"))
        )
    garment = draft.mention(tie.object)
    draft.relate(subject, "wear", garment, label)
    return f" {words} {garment.text}"


def background(draft: Draft) -> tuple[str, str, int]:
    """Add the background to the form; return (`in the park`, `in`, node of the park)."""
    name = draft.scene.background
    preposition, the = draft.rng.choice(BACKGROUND_PHRASES[name])
    word = draft.rng.choice(words_of(name))
    the = article(word) if the == "a" else the
    draft.form.background = name
    return f"{preposition} {the} {word}", preposition, draft.add_node(word, word, [])


def add_place(
    draft: Draft, sentence: str, mentions: list[Mention], verb: str = "", first: bool = False
) -> str:
    """Return `SENTENCE in a park`, or `In a park, SENTENCE` with the place `first`.

    The place belongs to `mentions`, the subjects of the main verb.
    """
    phrase, preposition, node = background(draft)
    for mention in mentions:
        draft.edge(mention, f"{verb} {preposition}".strip(), node)
    return f"{phrase}, {sentence}" if first else f"{sentence} {phrase}"


def listed(mentions: list[Mention]) -> str:
    """Return `a dog, a red car and a house`."""
    *most, last = [mention.text for mention in mentions]
    return f"{', '.join(most)} and {last}" if most else last
