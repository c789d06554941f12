"""An unfinished caption: each phrase adds to its text, its logical form and its text graph.

The kind of sentence and its relations are drawn from `Draft.rng`. The wording of an object is drawn
from `Draft.fate`, whose draws depend on the object and not on its position in the sentence. So a
caption of a scene and the same caption of its twin have the same words: "a small dog is chasing a
guy", "a guy is chasing a small dog".
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import NamedTuple

from manymatch.batch.scene_graph import Relation, SceneGraph
from manymatch.scenes.forms import ATTRIBUTES, Form, FormObject
from manymatch.scenes.kinds import (
    ACTIVITIES,
    CLOTHES,
    COLOUR_WORDS,
    KINDS,
    NUMERALS,
    PEOPLE,
    PREPOSITIONS,
    SIZE_WORDS,
    VERBS,
    Verb,
    article,
    plural,
    words_of,
)
from manymatch.scenes.world import Scene, Tie

_ATTRIBUTE_SHARES = {"colour": 0.6, "size": 0.35, "state": 0.3}
"""Probability that an attribute is mentioned before the noun."""
_MEDIUM = 0.3
"""Factor on the probability of `size` if the size is medium."""
_FOCUS = 0.9
"""Probability of the attribute in which twins differ."""
_HYPERNYM = 0.15
"""Probability of a hypernym in place of the kind."""
_FLAT_TOPS = ("table", "box", "house", "car", "bus", "truck")


class Inapplicable(Exception):
    """The scene has nothing that this kind of sentence could say."""


@dataclass(frozen=True)
class Focus:
    """What captions of twins should mention: these objects and, if not None, this attribute."""

    objects: tuple[int, ...] = ()
    attribute: str | None = None


@dataclass(frozen=True)
class Mention:
    """A noun phrase: its words, its node in the text graph, its objects in the form and scene."""

    text: str
    node: int
    form_object: int
    thing: int
    plural: bool = False

    @property
    def be(self) -> str:
        return "are" if self.plural else "is"


class Predicate(NamedTuple):
    """A predicate: its words, its object, and the lemma of an intransitive verb.

    The lemma takes further places into its label. It is "" for a transitive verb or a copula.
    """

    text: str
    object: Mention
    activity: str


@dataclass
class Draft:
    """An unfinished caption of `scene`."""

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
        """Return a random number in [0, 1) that is the same for `key` in the whole caption."""
        digest = blake2b(repr((self._seed, key)).encode(), digest_size=6).digest()
        return int.from_bytes(digest, "big") / (1 << 48)

    def pick(self, options: Sequence[str], *key: object) -> str:
        return options[int(self.fate(*key) * len(options))]

    # Noun phrases

    def mention(
        self, thing: int, *, state: bool = True, bare: bool = False, the: float = 0.15
    ) -> Mention:
        """Return a noun phrase such as `a small red dog`, with "the" with the probability `the`.

        `state` permits the state. `bare` forbids all attributes.

        Raises:
            Inapplicable: an earlier phrase mentions this object.
        """
        if thing in self._things:
            # The form maps its objects to different objects of the scene.
            raise Inapplicable
        self._things.add(thing)
        spec = self.scene.things[thing].spec
        # The order of mention distinguishes objects of one kind.
        self._mentioned[spec.kind] += 1
        key = (spec.kind, self._mentioned[spec.kind])
        noun, hypernyms = spec.kind, KINDS[spec.kind].hypernyms
        if hypernyms and self.fate(key, "hypernym") < _HYPERNYM:
            noun = self.pick(hypernyms, key, "which hypernym")
        described = FormObject(noun)
        words = []
        for name in ("size", "state", "colour"):
            value = getattr(spec, name)
            allowed = not bare and (state or name != "state")
            if value and allowed and self.fate(key, name) < self._share(thing, name):
                setattr(described, name, value)
                words.append(self._attribute(value))
        head = self.pick(words_of(noun), key, "word")
        node = self.add_node(head, head, words)
        phrase = " ".join([*words, head])
        determiner = "the" if self.fate(key, "the") < the else article(phrase)
        return Mention(f"{determiner} {phrase}", node, self._add_object(described), thing)

    def mention_many(self, things: list[int], noun: str, shared: dict[str, str]) -> Mention:
        """Return a phrase such as `two small dogs` for `things` with the `shared` attributes."""
        self._things.update(things)
        described = FormObject(noun, count=len(things), **shared)
        words = [self._attribute(shared[n]) for n in ("size", "state", "colour") if n in shared]
        head = self.pick(words_of(noun), noun)
        numeral = NUMERALS[len(things)]
        # The lemma of "people" is "people".
        name = "people" if head == "person" else head
        node = self.add_node(plural(head), name, [numeral, *words])
        text = " ".join([numeral, *words, plural(head)])
        return Mention(text, node, self._add_object(described), things[0], plural=True)

    def _share(self, thing: int, attribute: str) -> float:
        """Return the probability that an attribute of an object is mentioned before the noun."""
        spec = self.scene.things[thing].spec
        if attribute == "colour" and spec.kind in CLOTHES.values():
            return 1.0  # everybody wears a shirt or dress, so only the colour is informative
        if attribute == self.focus.attribute and thing in self.focus.objects:
            return _FOCUS
        medium = spec.size == "medium" and attribute == "size"
        return _ATTRIBUTE_SHARES[attribute] * (_MEDIUM if medium else 1)

    def _attribute(self, value: str) -> str:
        return self.pick({**COLOUR_WORDS, **SIZE_WORDS}.get(value, (value,)), value)

    def add_node(self, surface: str, name: str, attributes: list[str]) -> int:
        self.objects.append(surface)
        self.names.append(name)
        self.attributes.append(list(attributes))
        return len(self.objects) - 1

    def _add_object(self, described: FormObject) -> int:
        self.form.objects.append(described)
        return len(self.form.objects) - 1

    # Attributes after the noun

    def describe(self, mention: Mention, attribute: str) -> str:
        """Add an attribute of the mentioned object to form and graph, and return its word."""
        value = getattr(self.scene.things[mention.thing].spec, attribute)
        described = self.form.objects[mention.form_object]
        if value is None or getattr(described, attribute) is not None:
            raise Inapplicable
        setattr(described, attribute, value)
        word = self._attribute(value)
        self.attributes[mention.node].append(word)
        return word

    def unused_attributes(self, mention: Mention) -> list[str]:
        """Return the attributes of the object that the caption does not mention yet."""
        spec = self.scene.things[mention.thing].spec
        described = self.form.objects[mention.form_object]
        return [n for n in ATTRIBUTES if getattr(spec, n) and getattr(described, n) is None]

    # Relations

    def edge(self, subject: Mention, label: str, object: int) -> None:
        self.edges.append(Relation(subject.node, label, object))

    def relate(self, subject: Mention, name: str, object: Mention, label: str) -> None:
        """Add the relation `subject name object` to the form, and its `label` to the text graph."""
        self.form.relations.append((subject.form_object, name, object.form_object))
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
        """Return the participle of the subject's activity if its state is not mentioned yet."""
        if subject.plural or "state" not in self.unused_attributes(subject):
            return None
        state = self.scene.things[subject.thing].spec.state
        return state if state in ACTIVITIES else None

    def locate(self, tie: Tie, subject: Mention, *, finite: bool) -> tuple[str, str]:
        """Return the words before the place, and the verb's lemma for the label.

        Examples: (`is sleeping under`, `sleep`), (`is under`, ``).
        """
        preposition = self.preposition(tie)
        be = f"{subject.be} " if finite else ""
        activity = self.activity(subject)
        if activity and self.fate("active", tie.relation) < 0.5:
            self.form.objects[subject.form_object].state = activity
            return f"{be}{activity} {preposition}", ACTIVITIES[activity]
        return f"{be}{preposition}", ""

    def predicate(self, tie: Tie, subject: Mention, *, finite: bool) -> Predicate:
        """Return a predicate about `tie`; without `finite` as a participle or preposition phrase.

        Examples: `is holding a ball`, `holding a ball`, `is next to a car`.
        """
        if tie.relation in VERBS:
            verb = self.verb(tie.relation)
            words, label, activity = verb.ing, verb.lemma, ""
            if finite and self.chance(0.6):
                words = f"{subject.be} {verb.ing}"
            elif finite:
                words = verb.lemma if subject.plural else verb.third
        else:
            words, activity = self.locate(tie, subject, finite=finite)
            label = f"{activity} {self.preposition(tie)}".strip()
        object = self.mention(tie.object)
        self.relate(subject, tie.relation, object, label)
        return Predicate(f"{words} {object.text}", object, activity)

    def who(self, mention: Mention) -> str:
        """Return a relative pronoun for the mentioned object."""
        noun = self.form.objects[mention.form_object].noun
        person = noun in PEOPLE or noun in ("person", "child")
        return self.pick(("that", "who" if person else "which"), "who")
