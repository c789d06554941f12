"""What single elements of sampled queries do: where they look, what they read, what they find."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from manymatch.reporting.attention_drawing import Look, look
from manymatch.reporting.heats import Heat
from manymatch.reporting.queries import Thumbnails
from manymatch.results.sets import (
    CaptionMap,
    ImageMap,
    NearestCaption,
    NearestImage,
    SetDetails,
)

_MOST_PANELS = 8
"""Images and captions whose elements the page shows: bounds its size."""

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Named:
    """A run as the page shows it: its preset, and the number of its line style."""

    preset: str
    style: int


@dataclass(frozen=True)
class Answer:
    """An item that an element finds; `also` are the query's other elements (from 1) that show the
    same item."""

    item: NearestCaption | NearestImage
    picture: int | None
    also: list[int]


@dataclass(frozen=True)
class Element:
    """One element of a query: where it looks after the last pass (None: not known) and after each
    one before, and what it finds."""

    look: Look | None
    earlier: list[Look]
    answers: list[Answer]


@dataclass(frozen=True)
class Answered:
    """What one run's elements do with a query. `distinct`: different items that are nearest to an
    element; `words`: what the elements of a caption read (None: not known)."""

    run: Named
    elements: list[Element]
    distinct: int
    words: Heat | None


@dataclass(frozen=True)
class Panel:
    """A query: its picture or its text, and what the elements of each run do with it."""

    name: str
    picture: int | None
    answered: list[Answered]


Shown = Sequence[tuple[Named, SetDetails]]


def image_panels(
    shown: Shown, pictures: dict[str, int | None], thumbnails: Thumbnails
) -> list[Panel]:
    """The sampled images; `pictures` are the numbers of their thumbnails by id."""

    def answered(run: Named, sets: SetDetails) -> dict[str, Answered]:
        maps = {found.image_id: found for found in sets.image_maps}
        return {
            query.image_id: _answered(run, query.elements, thumbnails, maps.get(query.image_id))
            for query in sets.nearest.images
        }

    return [Panel(key, pictures.get(key), runs) for key, runs in _by_query(shown, answered)]


def caption_panels(shown: Shown, texts: dict[str, str], thumbnails: Thumbnails) -> list[Panel]:
    """The sampled captions; `texts` by id."""

    def answered(run: Named, sets: SetDetails) -> dict[str, Answered]:
        maps = {found.caption_id: _words(found) for found in sets.caption_maps}
        return {
            query.caption_id: _answered(
                run, query.elements, thumbnails, words=maps.get(query.caption_id)
            )
            for query in sets.nearest.captions
        }

    return [Panel(texts.get(key, key), None, runs) for key, runs in _by_query(shown, answered)]


def _by_query(
    shown: Shown, answered: Callable[[Named, SetDetails], dict[str, _Value]]
) -> list[tuple[str, list[_Value]]]:
    """The first queries of all runs by id, each with what every run that has it answered."""
    by_run = [answered(run, sets) for run, sets in shown]
    ids = list(dict.fromkeys(key for found in by_run for key in found))[:_MOST_PANELS]
    return [(key, [found[key] for found in by_run if key in found]) for key in ids]


def _answered(
    run: Named,
    elements: Sequence[Sequence[NearestCaption | NearestImage]],
    thumbnails: Thumbnails,
    places: ImageMap | None = None,
    words: Heat | None = None,
) -> Answered:
    ids = [[_id(item) for item in items] for items in elements]
    return Answered(
        run=run,
        elements=[
            Element(
                look=look(places, places.weights[k], k) if places else None,
                earlier=[look(places, maps[k], k) for maps in places.passes[:-1]] if places else [],
                answers=[
                    Answer(
                        item,
                        thumbnails.number(getattr(item, "thumbnail", None)),
                        [
                            other + 1
                            for other, each in enumerate(ids)
                            if other != k and _id(item) in each
                        ],
                    )
                    for item in items
                ],
            )
            for k, items in enumerate(elements)
        ],
        distinct=len({each[0] for each in ids}),
        words=words,
    )


def _id(item: NearestCaption | NearestImage) -> str:
    return item.caption_id if isinstance(item, NearestCaption) else item.image_id


def _words(found: CaptionMap) -> Heat:
    rows = [
        (f"Element {k}", [(f"{100 * value:.0f}", math.sqrt(min(value, 1.0))) for value in weights])
        for k, weights in enumerate(found.weights, start=1)
    ]
    return Heat("Percent of each element's attention", found.words, rows)
