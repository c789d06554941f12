"""Every (image, caption) pair of a gallery in which the caption is true of the image.

Captions first meet a filter: for every object they tell, the set of images that hold enough such
objects (a bit mask, kept for the next caption that tells the same); the search for an embedding
runs on the images that pass all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from manymatch.datasets.scenes.forms import ATTRIBUTES, Form, FormObject, Pattern, fits
from manymatch.datasets.scenes.kinds import KINDS


class Gallery:
    """The scene graphs of a split, indexed by what they hold.

    `graphs` are rows of `scenes.jsonl` (background, objects, relations).
    """

    def __init__(self, graphs: Sequence[dict[str, Any]]):
        self.graphs = graphs
        self.relations = [frozenset((s, name, o) for s, name, o in g["relations"]) for g in graphs]
        self._everything = (1 << len(graphs)) - 1
        self._masks: dict[tuple[Any, ...], int] = {}
        self._things: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        self._backgrounds: dict[str, int] = defaultdict(int)
        self._related: dict[str, int] = defaultdict(int)
        for row, graph in enumerate(graphs):
            self._index(row, graph)

    def _index(self, row: int, graph: dict[str, Any]) -> None:
        self._backgrounds[graph["background"]] |= 1 << row
        for name in {name for _, name, _ in graph["relations"]}:
            self._related[name] |= 1 << row
        for thing in graph["objects"]:
            for noun in (thing["kind"], *KINDS[thing["kind"]].hypernyms):
                self._things[noun].append((row, thing))

    def true_rows(self, form: Form) -> list[int]:
        """The rows of all images of which `form` is true, in order."""
        pattern = Pattern(form)
        return [
            row
            for row in _rows(self._candidates(form))
            if pattern.true_of(
                self.graphs[row]["background"], self.graphs[row]["objects"], self.relations[row]
            )
        ]

    def _candidates(self, form: Form) -> int:
        mask = self._everything
        if form.background is not None:
            mask &= self._backgrounds[form.background]
        for _, name, _ in form.relations:
            mask &= self._related[name]
        for wanted in form.objects:
            mask &= self._holding(wanted)
        return mask

    def _holding(self, wanted: FormObject) -> int:
        """Images with at least `count` objects as `wanted`."""
        key = (wanted.noun, wanted.count, *(getattr(wanted, name) for name in ATTRIBUTES))
        if key not in self._masks:
            found: dict[int, int] = defaultdict(int)
            for row, thing in self._things[wanted.noun]:
                found[row] += fits(wanted, thing)
            self._masks[key] = sum(1 << row for row, n in found.items() if n >= wanted.count)
        return self._masks[key]


def _rows(mask: int) -> Iterator[int]:
    """Positions of the set bits, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def true_pairs(gallery: Gallery, forms: Iterable[Form]) -> Iterator[tuple[int, int]]:
    """(image row, caption number) of all true pairs, captions in order."""
    for number, form in enumerate(forms):
        for row in gallery.true_rows(form):
            yield row, number
