"""All (image, caption) pairs of a gallery in which the caption is true of the image.

A filter first selects the images that have the caption's background, the names of its relations,
and enough objects of each description (cached for captions with the same description). The search
for a mapping runs only on these images.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from manymatch.scenes.forms import ATTRIBUTES, Form, FormObject, Pattern
from manymatch.scenes.kinds import KINDS

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
            self._index(row, graph)

    def _index(self, row: int, graph: dict[str, Any]) -> None:
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
        pattern = Pattern(form)
        return [
            row
            for row in sorted(self._candidates(form))
            if pattern.true_of(
                self.graphs[row]["background"], self.graphs[row]["objects"], self.relations[row]
            )
        ]

    def _candidates(self, form: Form) -> set[int]:
        conditions = [self._holding(wanted) for wanted in form.objects]
        conditions += [self._rows["relation", name] for _, name, _ in form.relations]
        if form.background is not None:
            conditions.append(self._rows["background", form.background])
        return _common(conditions)

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
