"""One caption in the making: every phrase adds to its text, its form and its text graph at once.

What kind of sentence tells which relations is drawn from `Draft.rng`; how a thing is worded, from
`Draft.fate`, whose draws belong to the thing and not to its place in the sentence. So a caption of
a scene and the same caption of its twin hold the same words: "a small dog is chasing a guy", "a guy
is chasing a small dog".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import NamedTuple

from manymatch.scene_graphs.graph import Relation, SceneGraph
from manymatch.scenes.forms import ATTRIBUTES, Form, FormObject
from manymatch.scenes.kinds import CLOTHES, KINDS, PEOPLE
from manymatch.scenes.words import (
    ACTIVITIES,
    BACKGROUND_PHRASES,
    COLOUR_WORDS,
    NUMERALS,
    PREPOSITIONS,
    SIZE_WORDS,
    VERBS,
    Verb,
    article,
    plural,
    words_of,
)
from manymatch.scenes.world import Scene, Tie

_TOLD = {"colour": 0.6, "size": 0.35, "state": 0.3}
"""How often an attribute is told before the noun."""
_MEDIUM = 0.3
"""How much rarer a medium size is told."""
_FOCUS = 0.9
"""The same for the attribute in which twins differ."""
_HYPERNYM = 0.15
_FLAT_TOPS = ("table", "box", "house", "car", "bus", "truck")


class Inapplicable(Exception):
    """The scene holds nothing that the chosen kind of sentence could tell."""


@dataclass(frozen=True)
class Focus:
    """What captions of twins should tell: these objects and, if it is one, this attribute."""

    objects: tuple[int, ...] = ()
    attribute: str | None = None


@dataclass(frozen=True)
class Mention:
    """A noun phrase: its words, its node in the text graph, its object in the form and scene."""

    text: str
    node: int
    told: int
    thing: int
    plural: bool = False

    @property
    def be(self) -> str:
        return "are" if self.plural else "is"


class Predicate(NamedTuple):
    """What is said of a subject: the words, the object in them, and the lemma of an intransitive
    verb, to which further places belong ("" if the verb is transitive or a copula)."""

    text: str
    object: Mention
    activity: str


@dataclass
class Draft:
    """A caption in the making."""

    scene: Scene
    rng: Random
    focus: Focus = Focus()
    form: Form = field(default_factory=Form)
    objects: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    attributes: list[list[str]] = field(default_factory=list)
    edges: list[Relation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._seed = self.rng.getrandbits(64)
        self._mentioned: Counter[str] = Counter()
        self._things: set[int] = set()

    def graph(self) -> SceneGraph:
        return SceneGraph(
            tuple(self.objects),
            tuple(self.names),
            tuple(map(tuple, self.attributes)),
            tuple(self.edges),
        )

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def fate(self, *key: object) -> float:
        """A number in [0, 1) that belongs to `key` throughout this caption."""
        digest = blake2b(repr((self._seed, key)).encode(), digest_size=6).digest()
        return int.from_bytes(digest, "big") / (1 << 48)

    def pick(self, options: Sequence[str], *key: object) -> str:
        return options[int(self.fate(*key) * len(options))]

    # Noun phrases

    def mention(
        self, thing: int, *, state: bool = True, bare: bool = False, the: float = 0.15
    ) -> Mention:
        """`a small red dog`; without `state` it is left to the predicate, `bare`: no attribute;
        `the`: how likely the article is definite."""
        if thing in self._things:
            # Two phrases mean two things: the form maps objects to different ones.
            raise Inapplicable
        self._things.add(thing)
        spec = self.scene.things[thing].spec
        # Things of one kind are told apart by the order in which they are mentioned.
        self._mentioned[spec.kind] += 1
        key = (spec.kind, self._mentioned[spec.kind])
        noun = self._noun(spec.kind, key)
        told = FormObject(noun)
        words = []
        for name in ("size", "state", "colour"):
            value = getattr(spec, name)
            told_here = not bare and (state or name != "state")
            if value and told_here and self.fate(key, name) < self._share(thing, name):
                setattr(told, name, value)
                words.append(self._attribute(value))
        head = self.pick(words_of(noun), key, "word")
        node = self._node(head, head, words)
        phrase = " ".join([*words, head])
        determiner = "the" if self.fate(key, "the") < the else article(phrase)
        return Mention(f"{determiner} {phrase}", node, self._tell(told), thing)

    def mention_many(self, things: list[int], noun: str, shared: dict[str, str]) -> Mention:
        """`two small dogs`: as many as `things`, all with the `shared` attributes."""
        self._things.update(things)
        told = FormObject(noun, count=len(things), **shared)
        words = [self._attribute(shared[n]) for n in ("size", "state", "colour") if n in shared]
        head = self.pick(words_of(noun), noun)
        numeral = NUMERALS[len(things)]
        # The lemma of "people" is "people".
        name = "people" if head == "person" else head
        node = self._node(plural(head), name, [numeral, *words])
        text = " ".join([numeral, *words, plural(head)])
        return Mention(text, node, self._tell(told), things[0], plural=True)

    def _noun(self, kind: str, key: object) -> str:
        hypernyms = KINDS[kind].hypernyms
        if hypernyms and self.fate(key, "hypernym") < _HYPERNYM:
            return self.pick(hypernyms, key, "which hypernym")
        return kind

    def _share(self, thing: int, attribute: str) -> float:
        """How often an attribute of a thing is told before the noun."""
        spec = self.scene.things[thing].spec
        if attribute == "colour" and spec.kind in CLOTHES.values():
            return 1.0  # that somebody wears a shirt says nothing
        if attribute == self.focus.attribute and thing in self.focus.objects:
            return _FOCUS
        return _TOLD[attribute] * (_MEDIUM if spec.size == "medium" and attribute == "size" else 1)

    def _attribute(self, value: str) -> str:
        return self.pick({**COLOUR_WORDS, **SIZE_WORDS}.get(value, (value,)), value)

    def _node(self, surface: str, name: str, attributes: list[str]) -> int:
        self.objects.append(surface)
        self.names.append(name)
        self.attributes.append(list(attributes))
        return len(self.objects) - 1

    def _tell(self, told: FormObject) -> int:
        self.form.objects.append(told)
        return len(self.form.objects) - 1

    # Attributes after the noun

    def describe(self, mention: Mention, attribute: str) -> str:
        """The word of an attribute of the mentioned object, which it now has in form and graph."""
        value = getattr(self.scene.things[mention.thing].spec, attribute)
        told = self.form.objects[mention.told]
        if value is None or getattr(told, attribute) is not None:
            raise Inapplicable
        setattr(told, attribute, value)
        word = self._attribute(value)
        self.attributes[mention.node].append(word)
        return word

    def untold(self, mention: Mention) -> list[str]:
        """Attributes that the object has and the caption has not told yet."""
        spec, told = self.scene.things[mention.thing].spec, self.form.objects[mention.told]
        return [n for n in ATTRIBUTES if getattr(spec, n) and getattr(told, n) is None]

    # Relations

    def edge(self, subject: Mention, label: str, object: int) -> None:
        self.edges.append(Relation(subject.node, label, object))

    def relate(self, subject: Mention, name: str, object: Mention, label: str) -> None:
        """`subject name object` in the form, `label` in the text graph."""
        self.form.relations.append((subject.told, name, object.told))
        self.edge(subject, label, object.node)

    def verb(self, name: str) -> Verb:
        return VERBS[name][int(self.fate(name) * len(VERBS[name]))]

    def preposition(self, tie: Tie) -> str:
        words = PREPOSITIONS[tie.relation]
        carrier = self.scene.things[tie.object].spec.kind
        if tie.relation == "on" and carrier not in _FLAT_TOPS:
            return "on"
        return self.pick(words, tie.relation)

    def activity(self, subject: Mention) -> str | None:
        """The participle of what the subject is doing, if nothing has told its state."""
        if subject.plural or "state" not in self.untold(subject):
            return None
        state = self.scene.things[subject.thing].spec.state
        return state if state in ACTIVITIES else None

    def locate(self, tie: Tie, subject: Mention, *, finite: bool) -> tuple[str, str]:
        """Words before the place, and the verb's lemma in its label: (`is sleeping under`,
        `sleep`), or (`is under`, ``)."""
        preposition = self.preposition(tie)
        be = f"{subject.be} " if finite else ""
        activity = self.activity(subject)
        if activity and self.fate("active", tie.relation) < 0.5:
            self.form.objects[subject.told].state = activity
            return f"{be}{activity} {preposition}", ACTIVITIES[activity]
        return f"{be}{preposition}", ""

    def predicate(self, tie: Tie, subject: Mention, *, finite: bool) -> Predicate:
        """`is holding a ball`, `holding a ball`, `is next to a car`, `sleeping under a table`."""
        if tie.relation in VERBS:
            verb = self.verb(tie.relation)
            words, label, activity = self._inflected(verb, subject, finite), verb.lemma, ""
        else:
            words, activity = self.locate(tie, subject, finite=finite)
            label = f"{activity} {self.preposition(tie)}".strip()
        object = self.mention(tie.object)
        self.relate(subject, tie.relation, object, label)
        return Predicate(f"{words} {object.text}", object, activity)

    def _inflected(self, verb: Verb, subject: Mention, finite: bool) -> str:
        if not finite:
            return verb.ing
        if self.chance(0.6):
            return f"{subject.be} {verb.ing}"
        return verb.lemma if subject.plural else verb.third

    def clothes(self, person: Mention) -> str:
        """`in a red shirt` and the like, or nothing."""
        worn = [t for t in self.scene.ties if t.subject == person.thing and t.relation == "wear"]
        if not worn:
            return ""
        tie = self.rng.choice(worn)
        if self.scene.things[tie.object].spec.kind == "hat":
            words, label = self.rng.choice((("wearing", "wear"), ("with", "with")))
        else:
            words, label = self.rng.choice(
                (("wearing", "wear"), ("in", "in"), ("in", "in"), ("dressed in", "dress in"))
            )
        garment = self.mention(tie.object)
        self.relate(person, "wear", garment, label)
        return f" {words} {garment.text}"

    def who(self, mention: Mention) -> str:
        noun = self.form.objects[mention.told].noun
        person = noun in PEOPLE or noun in ("person", "child")
        return self.pick(("that", "who" if person else "which"), "who")

    # Background

    def background(self) -> tuple[str, str, int]:
        """(`in the park`, `in`, node of the park); the form tells the background now."""
        place = self.scene.background
        preposition, the = self.rng.choice(BACKGROUND_PHRASES[place])
        word = self.rng.choice(words_of(place))
        the = article(word) if the == "a" else the
        self.form.background = place
        return f"{preposition} {the} {word}", preposition, self._node(word, word, [])
