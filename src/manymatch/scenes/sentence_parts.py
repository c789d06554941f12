"""Parts that several kinds of sentences share."""

from __future__ import annotations

from manymatch.scenes.kinds import PEOPLE
from manymatch.scenes.phrases import Draft, Mention
from manymatch.scenes.words import BACKGROUND_PHRASES, article, words_of


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


def with_place_first(draft: Draft, sentence: str, nodes: list[Mention], verb: str = "") -> str:
    """Return `In a park, SENTENCE`. The place belongs to the subjects `nodes` of the main verb."""
    phrase, preposition, node = background(draft)
    for mention in nodes:
        draft.edge(mention, f"{verb} {preposition}".strip(), node)
    return f"{phrase}, {sentence}"


def with_place_last(draft: Draft, sentence: str, mentions: list[Mention], verb: str = "") -> str:
    """Return `SENTENCE in a park`. The place belongs to `mentions`."""
    phrase, preposition, node = background(draft)
    for mention in mentions:
        draft.edge(mention, f"{verb} {preposition}".strip(), node)
    return f"{sentence} {phrase}"


def listed(mentions: list[Mention]) -> str:
    """Return `a dog, a red car and a house`."""
    *most, last = [mention.text for mention in mentions]
    return f"{', '.join(most)} and {last}" if most else last
