"""The sets of all methods that have them, ready for the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from manymatch.reporting.element_panels import Named, Panel, caption_panels, image_panels
from manymatch.reporting.heats import Heat, pair_heats
from manymatch.reporting.published_ablations import PublishedAblation, of_sets
from manymatch.reporting.queries import Thumbnails
from manymatch.results.runs import Run
from manymatch.results.sets import (
    COLLAPSED,
    PLANE_SIDE,
    ElementMetrics,
    Modality,
    ProjectedSets,
    Projection,
)


@dataclass(frozen=True)
class Side:
    """One modality of one run: how alive its sets are, and the rsum with each selection of
    elements (None: it has no such elements). `log_variance_squared` is by MaxMatch's formula."""

    log_variance: float | None
    log_variance_squared: float | None
    winners: str | None
    distinct: str | None
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
class Cloud:
    """All points of one element (from 0) of one modality, as a path of dots."""

    element: int
    modality: Modality
    path: str


@dataclass(frozen=True)
class Plane:
    """The elements of a run's random sets; `drawn` says how many of how many."""

    run: Named
    clouds: list[Cloud]
    drawn: str


@dataclass(frozen=True)
class SetsView:
    """All about the sets of one data set's runs."""

    image_selections: list[str]
    text_selections: list[str]
    rows: list[Row]
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
        published=of_sets(),
        heats=[(name, pair_heats(sets.pairs)) for name, sets in shown],
        images=image_panels(shown, pictures, thumbnails),
        captions=caption_panels(shown, texts, thumbnails),
        planes=[plane_of(name, sets.projection) for name, sets in shown],
    )


def _selections(sides: Iterable[ElementMetrics | None]) -> list[str]:
    """The names of all selections: single elements first, then by size."""
    names = {name for side in sides if side for name in side.rsum_of}
    return sorted(names, key=lambda name: (name.count("+"), len(name), name))


def _side(metrics: ElementMetrics | None, selections: list[str]) -> Side:
    if metrics is None:
        return Side(None, None, None, None, [None] * len(selections))
    size = sum("+" not in name for name in metrics.rsum_of)
    return Side(
        metrics.log_circular_variance,
        metrics.log_circular_variance_squared,
        f"{metrics.winners:.1f} of {size}",
        None if metrics.distinct is None else f"{metrics.distinct:.1f} of {size}",
        [metrics.rsum_of.get(name) for name in selections],
    )


def plane_of(name: Named, projection: Projection) -> Plane:
    """The points of each element of each modality; images' lie on top, of which there are as a
    rule fewer."""
    sides: list[tuple[Modality, ProjectedSets]] = [
        ("texts", projection.texts),
        ("images", projection.images),
    ]
    return Plane(
        run=name,
        clouds=[
            Cloud(element, modality, "".join(f"M{x} {PLANE_SIDE - y}h0" for x, y in points))
            for modality, side in sides
            for element, points in enumerate(zip(*side.places, strict=True))
        ],
        drawn=" and ".join(
            f"{sum(map(len, side.places)):,} of {side.vectors:,} vectors of {modality}"
            for modality, side in reversed(sides)
        ),
    )
