"""Single elements of sampled queries: where they look, what they read, what they retrieve."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from manymatch.reporting.chart import styles
from manymatch.reporting.page import Section
from manymatch.reporting.sections.samples import (
    Answer,
    AskedImage,
    Picker,
    Question,
    Quote,
    answer_of,
)
from manymatch.reporting.sections.sets import Heat
from manymatch.reporting.table import Block, Grid, Heading, Note
from manymatch.results.all_results import AllResults
from manymatch.results.sets import CaptionMap, ImageMap, NearestCaption, NearestImage

_MAX_QUERIES = 8
"""The most images, and the most captions, whose elements the page shows."""

_LEVELS, _DARKEST = 6, 0.84
"""The number of opacity steps of the veil, and the opacity over a cell without attention."""

_LEAST = 0.05
"""A box is drawn if it has at least this part of the weight of the strongest box."""


@dataclass(frozen=True)
class Look:
    """The attention of one element.

    `frame` is the place of the picture in a square of 100 (x, y, width, height). A grid has
    `veils`, each an opacity and the path of the cells with this opacity in a square of `grid`.
    Boxes have `outlines`: x, y, width and height in percent of the picture, and a strength in 0..1.
    """

    label: str
    frame: tuple[float, float, float, float]
    grid: int | None
    veils: list[tuple[float, str]]
    outlines: list[tuple[float, ...]]


def look(image_map: ImageMap, weights: Sequence[float], element: int) -> Look:
    """The drawing of an element (from 0) of an image with its `weights` after any pass."""
    strongest = max(range(len(weights)), key=weights.__getitem__)
    most, grid = weights[strongest], image_map.grid
    relative = [weight / most if most else 0.0 for weight in weights]
    region = f"region {strongest + 1} of {len(weights)}"
    veils, outlines = [], []
    if grid:
        row, column = divmod(strongest, grid)
        region = f"row {row + 1}, column {column + 1} of {grid}"
        levels = [round((_LEVELS - 1) * (1 - value)) for value in relative]
        for level in range(1, _LEVELS):
            if path := _cells(levels, grid, level):
                veils.append((round(_DARKEST * level / (_LEVELS - 1), 2), path))
    else:
        for (x1, y1, x2, y2), value in zip(image_map.boxes or [], relative, strict=True):
            if value >= _LEAST:
                place = (round(100 * n, 1) for n in (x1, y1, x2 - x1, y2 - y1))
                outlines.append((*place, round(value, 2)))
        outlines.sort(key=lambda outline: outline[-1])  # the strongest box is on top
    across, down = (round(100 * side / max(image_map.size), 2) for side in image_map.size)
    label = f"Element {element + 1}: most, {100 * most:.0f}%, at {region}"
    frame = ((100 - across) / 2, (100 - down) / 2, across, down)
    return Look(label, frame, grid, veils, outlines)


def _cells(levels: list[int], side: int, level: int) -> str:
    """The cells of one level; neighbouring cells of a row are one rectangle."""
    path = ""
    for y in range(side):
        x = 0
        for cell, run in groupby(levels[y * side : (y + 1) * side]):
            width = len(list(run))
            if cell == level:
                path += f"M{x} {y}h{width}v1h-{width}z"
            x += width
    return path


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


def section(results: AllResults) -> list[Block]:
    """The sampled images, then the sampled captions."""
    number = styles(results.runs)
    samples = [run.samples for run in results.runs if run.samples]
    sampled = {query.id: query for one in samples for query in one.images}
    texts = {query.id: query.caption for one in samples for query in one.captions}
    images: dict[str, list[Elements]] = {}
    captions: dict[str, list[Elements]] = {}
    for run in results.runs:
        if run.sets is None:
            continue
        name, style, nearest = run.preset, number[run.preset], run.sets.nearest
        looks = {one.id: one for one in run.sets.image_maps}
        reads = {one.id: one for one in run.sets.caption_maps}
        for image in nearest.images:
            picture = sampled[image.id].thumbnail if image.id in sampled else None
            elements = _elements(image.elements, looks.get(image.id))
            summary = _summary(image.elements, "captions")
            shown = Elements(name, style, summary, elements, picture)
            images.setdefault(image.id, []).append(shown)
        for text in nearest.captions:
            words = _words(reads[text.id], name) if text.id in reads else None
            elements, summary = _elements(text.elements), _summary(text.elements, "images")
            shown = Elements(name, style, summary, elements, words=words)
            captions.setdefault(text.id, []).append(shown)

    blocks: list[Block] = []
    if images:
        questions = []
        for key, runs in list(images.items())[:_MAX_QUERIES]:
            query = sampled.get(key)
            picture, own = (query.thumbnail, query.captions) if query else (None, [])
            asked = AskedImage(picture, key, own)
            questions.append(Question(key, [asked, Grid(runs, "wide")], picture))
        blocks += [
            Heading("Where the elements of an image look, and what each element retrieves"),
            Note(
                "A bright region is one at which the element looks, relative to the region that "
                "has most of the element's attention. Each element ranks all captions by its "
                "cosine with the nearest element of the caption's set. Elements that retrieve "
                "the same captions stand for the same meaning."
            ),
            Picker("look", "image", questions, pictures=True),
        ]
    if captions:
        questions = []
        for key, runs in list(captions.items())[:_MAX_QUERIES]:
            caption = texts.get(key, key)
            questions.append(Question(caption, [Quote(caption), Grid(runs, "wide")]))
        blocks += [
            Heading("Which words the elements of a caption read, and what each element retrieves"),
            Note("Percent of each element's attention, then the images nearest to each element."),
            Picker("read", "caption", questions),
        ]
    return blocks


def _summary(nearest: Nearest, kind: str) -> str:
    distinct = len({items[0].id for items in nearest})
    return f"{len(nearest)} elements, different {kind} retrieved first: {distinct}"


def _elements(nearest: Nearest, image_map: ImageMap | None = None) -> list[Element]:
    """For each element what it sees, and its answers: each with the nearest element of the item,
    and the query's other elements (from 1) that retrieve the same item."""
    ids = [[item.id for item in items] for items in nearest]
    elements = []
    for k, items in enumerate(nearest):
        answers = []
        for item in items:
            others = [str(i + 1) for i, found in enumerate(ids) if i != k and item.id in found]
            notes = [f"cosine with element {item.element}"]
            notes += [f"also element {', '.join(others)}"] if others else []
            answers.append(answer_of(item, notes=notes))
        passes = [look(image_map, one[k], k) for one in image_map.passes] if image_map else []
        seen = look(image_map, image_map.weights[k], k) if image_map else None
        elements.append(Element(seen, passes[:-1], answers))
    return elements


def _words(read: CaptionMap, run: str) -> Heat:
    rows = [
        (f"Element {k}", [(f"{100 * value:.0f}", math.sqrt(min(value, 1.0))) for value in weights])
        for k, weights in enumerate(read.weights, start=1)
    ]
    title = "Percent of each element's attention"
    return Heat(title, f"Words read by {run}", read.words, rows, caption=False)


SECTIONS = [Section("Sets", "elements", 150, "Single elements", section, link="Elements")]
