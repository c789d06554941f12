"""Single elements of sampled queries: where they look, what they read, what they retrieve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from manymatch.reporting.attention_drawing import Look, look
from manymatch.reporting.blocks import Block, Grid, Heading, Note, View
from manymatch.reporting.heats import Heat
from manymatch.reporting.leaderboard import styles
from manymatch.reporting.queries import Answer, AskedImage, Picker, Question, Quote, answer_of
from manymatch.results.all_results import AllResults
from manymatch.results.sets import (
    CaptionMap,
    ImageMap,
    NearestCaption,
    NearestImage,
    SetDetails,
)

_MAX_QUERIES = 8
"""The most images, and the most captions, whose elements the page shows."""

Nearest = Sequence[Sequence[NearestCaption | NearestImage]]
"""What each element of a query retrieves, nearest first."""


@dataclass(frozen=True)
class Element:
    """One element of a query: where the element looks (None: not known), where it looked after the
    earlier passes, and what it retrieves."""

    look: Look | None
    earlier: list[Look]
    answers: list[Answer]


class Elements(Block):
    """The elements of one run for one query, over the `thumbnail` of an image query. `words` is
    what the elements of a caption read (None: not known)."""

    run: str
    style: int
    summary: str
    elements: list[Element]
    thumbnail: str | None = None
    words: Heat | None = None


def section(results: AllResults) -> View | None:
    """The sampled images, then the sampled captions."""
    sets = {run.preset: run.sets for run in results.runs if run.sets}
    if not sets:
        return None
    number = styles(results.runs)
    samples = [run.samples for run in results.runs if run.samples]
    pictures = {query.image_id: query.thumbnail for sampled in samples for query in sampled.images}
    image_captions = {
        query.image_id: query.captions for sampled in samples for query in sampled.images
    }
    texts = {query.caption_id: query.caption for sampled in samples for query in sampled.captions}

    def of_image(run: str, details: SetDetails) -> dict[str, Elements]:
        maps = {one.image_id: one for one in details.image_maps}
        return {
            query.image_id: _elements(
                run,
                number[run],
                query.elements,
                "captions",
                thumbnail=pictures.get(query.image_id),
                image_map=maps.get(query.image_id),
            )
            for query in details.nearest.images
        }

    def of_caption(run: str, details: SetDetails) -> dict[str, Elements]:
        maps = {one.caption_id: one for one in details.caption_maps}
        return {
            query.caption_id: _elements(
                run,
                number[run],
                query.elements,
                "images",
                caption_map=maps.get(query.caption_id),
            )
            for query in details.nearest.captions
        }

    images = [
        Question(
            key,
            [AskedImage(pictures.get(key), key, image_captions.get(key, [])), Grid(by_run, "wide")],
            pictures.get(key),
        )
        for key, by_run in _by_query(sets, of_image)
    ]
    captions = [
        Question(texts.get(key, key), [Quote(texts.get(key, key)), Grid(by_run, "wide")])
        for key, by_run in _by_query(sets, of_caption)
    ]
    blocks: list[Block] = []
    if images:
        blocks += [
            Heading("Where the elements of an image look, and what each element retrieves"),
            Note(
                "A bright region is one at which the element looks, relative to the region that "
                "has most of the element's attention. Each element ranks all captions by its "
                "cosine with the nearest element of the caption's set. Elements that retrieve "
                "the same captions stand for the same meaning."
            ),
            Picker("look", "image", images, pictures=True),
        ]
    if captions:
        blocks += [
            Heading("Which words the elements of a caption read, and what each element retrieves"),
            Note("Percent of each element's attention, then the images nearest to each element."),
            Picker("read", "caption", captions),
        ]
    return View("Single elements", "Elements", blocks) if blocks else None


def _by_query(
    sets: dict[str, SetDetails], elements: Callable[[str, SetDetails], dict[str, Elements]]
) -> list[tuple[str, list[Elements]]]:
    """The first queries of all runs by id, each with the elements of every run that has it."""
    by_run = [elements(run, details) for run, details in sets.items()]
    ids = list(dict.fromkeys(key for queries in by_run for key in queries))[:_MAX_QUERIES]
    return [(key, [queries[key] for queries in by_run if key in queries]) for key in ids]


def _elements(
    run: str,
    style: int,
    nearest: Nearest,
    kind: str,
    *,
    thumbnail: str | None = None,
    image_map: ImageMap | None = None,
    caption_map: CaptionMap | None = None,
) -> Elements:
    ids = [[_id(item) for item in items] for items in nearest]
    distinct = len({first for first, *_ in ids})
    return Elements(
        run,
        style,
        f"{len(nearest)} elements, different {kind} retrieved first: {distinct}",
        [
            Element(
                look=look(image_map, image_map.weights[k], k) if image_map else None,
                earlier=[look(image_map, weights[k], k) for weights in image_map.passes[:-1]]
                if image_map
                else [],
                answers=[answer_of(item, notes=_notes(item, k, ids)) for item in items],
            )
            for k, items in enumerate(nearest)
        ],
        thumbnail,
        _words(caption_map, run) if caption_map else None,
    )


def _notes(item: NearestCaption | NearestImage, k: int, ids: Sequence[Sequence[str]]) -> list[str]:
    """The nearest element of the item, and the query's other elements (from 1) that retrieve the
    same item."""
    others = [str(i + 1) for i, retrieved in enumerate(ids) if i != k and _id(item) in retrieved]
    nearest = f"cosine with element {item.element}"
    return [nearest, f"also element {', '.join(others)}"] if others else [nearest]


def _id(item: NearestCaption | NearestImage) -> str:
    return item.caption_id if isinstance(item, NearestCaption) else item.image_id


def _words(read: CaptionMap, run: str) -> Heat:
    rows = [
        (f"Element {k}", [(f"{100 * value:.0f}", math.sqrt(min(value, 1.0))) for value in weights])
        for k, weights in enumerate(read.weights, start=1)
    ]
    title = "Percent of each element's attention"
    return Heat(title, f"Words read by {run}", read.words, rows, caption=False)
