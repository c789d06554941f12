"""The sets of all methods that have them, ready for the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from manymatch.reporting.attention_drawing import Look, look
from manymatch.reporting.heats import Heat, pair_heats
from manymatch.reporting.published_ablations import PublishedAblation, of_sets
from manymatch.reporting.queries import Thumbnails
from manymatch.reporting.results import Run
from manymatch.reporting.set_results import (
    COLLAPSED,
    CaptionMap,
    ElementMetrics,
    ImageMap,
    Projection,
    ShownSets,
)

_MOST_PANELS = 8
"""Images and captions whose attention the page shows: bounds its size."""

_SIDE, _MARGIN = 400, 14
"""Of the square in which points are drawn."""


@dataclass(frozen=True)
class Named:
    """A run as the page shows it: its preset, and the number of its line style."""

    preset: str
    style: int


@dataclass(frozen=True)
class Side:
    """One modality of one run: how alive its sets are, and the rsum with each selection of
    elements (None: it has no such elements)."""

    log_variance: float | None
    winners: str | None
    rsums: list[float | None]

    @property
    def collapsed(self) -> bool:
        return self.log_variance is not None and self.log_variance < COLLAPSED


@dataclass(frozen=True)
class Row:
    """A run's line of the table."""

    run: Named
    rsum: float
    images: Side
    texts: Side


@dataclass(frozen=True)
class Panel:
    """A query: its picture or its text, and what the elements of each run do with it."""

    name: str
    picture: int | None
    looks: list[tuple[Named, list[Look]]]
    reads: list[tuple[Named, Heat]]


@dataclass(frozen=True)
class Dot:
    """An element in the plane; `style` is its image's colour."""

    x: float
    y: float
    style: int
    modality: str
    label: str


@dataclass(frozen=True)
class Plane:
    run: Named
    dots: list[Dot]
    pictures: list[tuple[int | None, str]]
    """Thumbnail and id of each image, in the order of the styles."""


@dataclass(frozen=True)
class SetsView:
    """All about the sets of one data set's runs."""

    image_selections: list[str]
    text_selections: list[str]
    rows: list[Row]
    galleries: list[str]
    """What chosen elements were ranked among, where it is not the whole split."""
    published: list[PublishedAblation]
    """What the papers print of theirs."""
    heats: list[tuple[Named, list[Heat]]]
    images: list[Panel]
    captions: list[Panel]
    planes: list[Plane]


def view(runs: Sequence[tuple[Run, int]], thumbnails: Thumbnails) -> SetsView | None:
    """The sets of one data set's runs (with their line styles); None if no method has them."""
    named = [
        (Named(run.preset, style), run, run.metrics.sets) for run, style in runs if run.metrics.sets
    ]
    if not named:
        return None
    shown = [(name, run.sets) for name, run, _ in named if run.sets]
    samples = [run.samples for _, run, _ in named if run.samples]
    pictures = {
        query.image_id: thumbnails.number(query.thumbnail)
        for found in samples
        for query in found.images
    }
    texts = {query.caption_id: query.caption for found in samples for query in found.captions}
    of_images = _selections(metrics.images for *_, metrics in named)
    of_texts = _selections(metrics.texts for *_, metrics in named)
    return SetsView(
        image_selections=of_images,
        text_selections=of_texts,
        rows=[
            Row(
                name,
                metrics.rsum,
                _side(metrics.images, of_images),
                _side(metrics.texts, of_texts),
            )
            for name, _, metrics in named
        ],
        galleries=[
            f"{run.preset}: its first {metrics.gallery:,} images"
            for _, run, metrics in named
            if metrics.gallery != run.provenance.images
        ],
        published=of_sets(),
        heats=[(name, pair_heats(sets.pairs)) for name, sets in shown],
        images=_image_panels(shown, pictures),
        captions=_caption_panels(shown, texts),
        planes=[plane_of(name, sets.projection, pictures) for name, sets in shown],
    )


def _selections(sides: Iterable[ElementMetrics | None]) -> list[str]:
    """The names of all selections: single elements first, then by size."""
    names = {name for side in sides if side for name in side.rsum_of}
    return sorted(names, key=lambda name: (name.count("+"), len(name), name))


def _side(metrics: ElementMetrics | None, selections: list[str]) -> Side:
    if metrics is None:
        return Side(None, None, [None] * len(selections))
    size = sum("+" not in name for name in metrics.rsum_of)
    return Side(
        metrics.log_circular_variance,
        f"{metrics.winners:.1f} of {size}",
        [metrics.rsum_of.get(name) for name in selections],
    )


Shown = Sequence[tuple[Named, ShownSets]]


def _image_panels(shown: Shown, pictures: dict[str, int | None]) -> list[Panel]:
    maps = [(name, {m.image_id: m for m in sets.image_maps}) for name, sets in shown]
    ids = list(dict.fromkeys(key for _, found in maps for key in found))[:_MOST_PANELS]
    return [
        Panel(
            name=key,
            picture=pictures.get(key),
            looks=[(name, _looks(found[key])) for name, found in maps if key in found],
            reads=[],
        )
        for key in ids
    ]


def _looks(found: ImageMap) -> list[Look]:
    return [look(found, element) for element in range(len(found.weights))]


def _caption_panels(shown: Shown, texts: dict[str, str]) -> list[Panel]:
    maps = [(name, {m.caption_id: m for m in sets.caption_maps}) for name, sets in shown]
    ids = list(dict.fromkeys(key for _, found in maps for key in found))[:_MOST_PANELS]
    return [
        Panel(
            name=texts.get(key, key),
            picture=None,
            looks=[],
            reads=[(name, _read(found[key])) for name, found in maps if key in found],
        )
        for key in ids
    ]


def _read(found: CaptionMap) -> Heat:
    rows = [
        (f"Element {k}", [(f"{100 * value:.0f}", math.sqrt(min(value, 1.0))) for value in weights])
        for k, weights in enumerate(found.weights, start=1)
    ]
    return Heat("Percent of each element's attention", found.words, rows)


def plane_of(name: Named, projection: Projection, pictures: dict[str, int | None]) -> Plane:
    """The points in a square, as large as they go; `pictures` are images' thumbnails by id."""
    points = projection.points
    xs, ys = [point.x for point in points] or [0.0], [point.y for point in points] or [0.0]
    span = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    scale = (_SIDE - 2 * _MARGIN) / span
    middle = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    dots = [
        Dot(
            x=round(_SIDE / 2 + (point.x - middle[0]) * scale, 1),
            y=round(_SIDE / 2 - (point.y - middle[1]) * scale, 1),
            style=point.image,
            modality=point.modality,
            label=f"Image {point.image + 1}"
            + (f", caption {point.caption}" if point.caption else "")
            + f", element {point.element}",
        )
        for point in points
    ]
    # Pictures' elements are the larger marks, and few: they lie on top.
    dots.sort(key=lambda dot: dot.modality == "images")
    return Plane(name, dots, [(pictures.get(key), key) for key in projection.images])
