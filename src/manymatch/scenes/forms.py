"""Logical forms of captions, and the (image, caption) pairs of a gallery in which a form is true.

A form states that there are pairwise different objects, each with a noun (kind or hypernym) and
optionally a colour, size and state, that have certain relations in front of a certain background.
An object with count n stands for n different objects with the same attributes and relations, so a
count means "at least n". A form is true of a scene if and only if an injective mapping of the
form's objects to the scene's objects satisfies all this.

In a gallery, a filter first selects the images that have the caption's background, the names of its
relations, and enough objects of each description (cached for captions with the same description).
The search for a mapping runs only on these images.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from manymatch.scenes.kinds import KINDS, is_a

ATTRIBUTES = ("colour", "size", "state")


@dataclass
class FormObject:
    """What a caption says about one object, or about `count` similar objects."""

    noun: str
    colour: str | None = None
    size: str | None = None
    state: str | None = None
    count: int = 1


@dataclass
class Form:
    """What a caption says: the background, objects, and relations (subject, name, object)."""

    background: str | None = None
    objects: list[FormObject] = field(default_factory=list)
    relations: list[tuple[int, str, int]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> "Form":
        return cls(
            value["background"],
            [FormObject(**item) for item in value["objects"]],
            [(s, name, o) for s, name, o in value["relations"]],
        )


def fits(wanted: FormObject, thing: dict[str, Any]) -> bool:
    """Return whether an object of a scene graph has the noun and attributes of `wanted`."""
    return is_a(thing["kind"], wanted.noun) and all(
        getattr(wanted, name) in (None, thing[name]) for name in ATTRIBUTES
    )


class Pattern:
    """A form with one node per object of a count; the search for a mapping fails early."""

    def __init__(self, form: Form):
        self.background = form.background
        copies = [range(item.count) for item in form.objects]
        nodes = [(i, copy) for i, numbers in enumerate(copies) for copy in numbers]
        index = {node: k for k, node in enumerate(nodes)}
        self.wanted = [form.objects[i] for i, _ in nodes]
        self.checks: list[list[tuple[int, str, int]]] = [[] for _ in nodes]
        for s, name, o in form.relations:
            for s_copy in copies[s]:
                for o_copy in copies[o]:
                    a, b = index[s, s_copy], index[o, o_copy]
                    self.checks[max(a, b)].append((a, name, b))

    def true_of(
        self,
        background: str,
        things: Sequence[dict[str, Any]],
        relations: frozenset[tuple[int, str, int]],
    ) -> bool:
        """Return whether the form can be mapped into the scene graph."""
        if self.background not in (None, background):
            return False
        choices = [[k for k, t in enumerate(things) if fits(item, t)] for item in self.wanted]
        return all(choices) and self._embeds(choices, relations, [])

    def _embeds(
        self,
        choices: list[list[int]],
        relations: frozenset[tuple[int, str, int]],
        mapped: list[int],
    ) -> bool:
        depth = len(mapped)
        if depth == len(choices):
            return True
        for candidate in choices[depth]:
            if candidate in mapped:
                continue
            mapped.append(candidate)
            related = all(
                (mapped[a], name, mapped[b]) in relations for a, name, b in self.checks[depth]
            )
            if related and self._embeds(choices, relations, mapped):
                return True
            mapped.pop()
        return False


Index = defaultdict[Any, set[int]]


class Gallery:
    """The scene graphs of a split, indexed by their contents.

    `graphs` are rows of `scenes.jsonl` (background, objects, relations).
    """

    def __init__(self, graphs: Sequence[dict[str, Any]]):
        self.graphs = graphs
        self.relations = [frozenset((s, name, o) for s, name, o in g["relations"]) for g in graphs]
        self._rows: Index = defaultdict(set)
        """Rows by background and by name of relation."""
        self._objects: Index = defaultdict(set)
        """Numbers of objects by noun and by (attribute, value)."""
        self._row_of: list[int] = []
        """The row of each object."""
        self._rows_holding: dict[tuple[Any, ...], set[int]] = {}
        """Cache of `_holding`."""
        for row, graph in enumerate(graphs):
            self._rows["background", graph["background"]].add(row)
            for _, name, _ in graph["relations"]:
                self._rows["relation", name].add(row)
            for thing in graph["objects"]:
                number = len(self._row_of)
                self._row_of.append(row)
                for noun in (thing["kind"], *KINDS[thing["kind"]].hypernyms):
                    self._objects["noun", noun].add(number)
                for name in ATTRIBUTES:
                    self._objects[name, thing[name]].add(number)

    def true_rows(self, form: Form) -> list[int]:
        """Return the rows of all images of which `form` is true, ascending."""
        conditions = [self._holding(wanted) for wanted in form.objects]
        conditions += [self._rows["relation", name] for _, name, _ in form.relations]
        if form.background is not None:
            conditions.append(self._rows["background", form.background])
        pattern, graphs = Pattern(form), self.graphs
        return [
            row
            for row in sorted(_common(conditions))
            if pattern.true_of(
                graphs[row]["background"], graphs[row]["objects"], self.relations[row]
            )
        ]

    def _holding(self, wanted: FormObject) -> set[int]:
        """Return the rows with at least `wanted.count` objects that fit `wanted`."""
        attributes = [(name, value) for name in ATTRIBUTES if (value := getattr(wanted, name))]
        key = (wanted.count, wanted.noun, *attributes)
        if key not in self._rows_holding:
            objects = _common([self._objects[key] for key in [("noun", wanted.noun), *attributes]])
            rows = Counter(self._row_of[number] for number in objects)
            self._rows_holding[key] = {row for row, n in rows.items() if n >= wanted.count}
        return self._rows_holding[key]


def _common(sets: list[set[int]]) -> set[int]:
    """Return the intersection, starting from the smallest set."""
    first, *others = sorted(sets, key=len)
    return first.intersection(*others)


def true_pairs(gallery: Gallery, forms: Iterable[Form]) -> Iterator[tuple[int, int]]:
    """Yield (image row, caption number) of all true pairs, in the order of the captions."""
    for number, form in enumerate(forms):
        for row in gallery.true_rows(form):
            yield row, number
