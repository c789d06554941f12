"""Methods that embed a sample as several elements: how the elements differ, and which match."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from manymatch.reporting.chart import STYLES, styles
from manymatch.reporting.page import Section
from manymatch.reporting.published import SET_METRICS, printed_tables
from manymatch.reporting.table import Block, Cell, Column, Folded, Grid, Heading, Note, Table
from manymatch.results.all_results import AllResults
from manymatch.results.runs import Run
from manymatch.results.sets import (
    COLLAPSED,
    PLANE_SIDE,
    ElementMetrics,
    ElementPairs,
    Modality,
    Projection,
    SetMetrics,
)

_NOTE = Note(
    "These methods embed an image or a caption as several vectors, so that each vector can stand "
    "for another meaning. The elements of a set differ if the log circular variance is not far "
    "below 0: DivE prints -2.13 for its sets on Flickr30K and -7.35 for collapsed sets. A value "
    f"below {COLLAPSED:g} is marked. An element wins if it is in the most similar pair of an "
    "image and its caption. The table shows the effective number of elements that share the "
    "wins; 1.0 means that one element always wins. “Different items” is the mean number of "
    "different items that the elements of a query retrieve first; 1.0 means that all elements "
    "retrieve the same item."
)
_MISSING = Note("The details of these sets are not on this machine. 'dvc repro' makes them.")


PAIRS_NOTE = (
    "Over all pairs of an image and its caption: how often two elements are the most similar ones "
    "of the pair, and how similar the two are. If a single cell among the best pairs is dark, a "
    "similarity that uses only best pairs (MIL) ignores the other elements, and they are not "
    "trained. If elements are matched one to one (MaxMatch), and always the same ones, each row "
    "and each column of the cosines has one dark cell."
)


class Heat(Block):
    """A table of texts. Each cell has a shade from 0 to 1; `label` is read aloud."""

    title: str
    label: str
    columns: list[str]
    rows: list[tuple[str, list[tuple[str, float]]]]
    caption: bool = True


def pair_heats(pairs: ElementPairs, name: str) -> list[Heat]:
    """How often image element (row) and text element (column) are the best pair, and how similar
    the two are. `name` is that of the method."""
    share = [[(f"{100 * value:.0f}%", math.sqrt(value)) for value in row] for row in pairs.share]
    cosine = [
        [(f"{value:.2f}", min(max(value, 0.0), 1.0)) for value in row] for row in pairs.cosine
    ]
    columns = [f"Text {number + 1}" for number in range(len(pairs.share[0]))]
    return [
        Heat(
            title,
            f"{title} of {name}",
            columns,
            [(f"Image {number + 1}", row) for number, row in enumerate(rows)],
        )
        for title, rows in (("Best pair", share), ("Mean cosine", cosine))
    ]


@dataclass(frozen=True)
class Cloud:
    """All points of one element (from 0) of one modality, as a path of dots."""

    element: int
    modality: Modality
    path: str

    @property
    def style(self) -> int:
        return self.element % STYLES


class Plane(Block):
    """The elements of random sets in the plane; `summary` says how many of how many are drawn."""

    name: str
    clouds: list[Cloud]
    summary: str


def section(results: AllResults) -> list[Block]:
    """The sets of all runs; nothing if no method has sets."""
    number = styles(results.runs)
    measured = [(run, run.metrics.sets) for run in results.runs if run.metrics.sets]
    if not measured:
        return []
    blocks: list[Block] = [_NOTE, _table(measured, number)]
    for table in printed_tables(*SET_METRICS):
        blocks.append(Folded(table.title, [table], "published"))
        if table.title.startswith("MaxMatch") and "circular variance" in table.title:
            blocks.append(_squared(measured))
    details = [(run.preset, run.sets) for run, _ in measured if run.sets]
    if not details:
        return [*blocks, _MISSING]
    heats = [
        Grid([Heading(name, style=number[name]), *pair_heats(sets.pairs, name)], "row")
        for name, sets in details
    ]
    return [
        *blocks,
        *(Heading("Which elements match"), Note(PAIRS_NOTE), Grid(heats, "wide")),
        *_partners(measured),
        Heading("The elements of the whole split"),
        Note(
            "t-SNE of random sets: near points are similar vectors. A colour stands for the "
            "number of an element, a square for an element of an image, and a dot for an element "
            "of a caption. If the points of a colour lie together, the element has the same role "
            "in every sample."
        ),
        Grid([plane(name, sets.projection) for name, sets in details], "medium"),
    ]


def _table(measured: Sequence[tuple[Run, SetMetrics]], styles: dict[str, int]) -> Table:
    sides = [(metrics.images, metrics.texts) for _, metrics in measured]
    # The selections of elements of each side: single elements first, then by size.
    selections = [
        sorted(
            {name for side in both if side for name in side.rsum_of},
            key=lambda name: (name.count("+"), len(name), name),
        )
        for both in zip(*sides, strict=True)
    ]
    groups = ("Log circular variance", "Elements that win", "Different items")
    columns = [
        Column("Method", numeric=False),
        *(Column(side, group) for group in groups for side in ("images", "texts")),
        Column("rsum, all elements"),
        *(
            Column(name, f"rsum, {kind} element … only")
            for kind, names in zip(("image", "text"), selections, strict=True)
            for name in names
        ),
    ]
    rows = [
        [
            Cell(run.preset, style=styles[run.preset]),
            *map(_variance, both),
            *(_size_cell(side, key) for key in ("winners", "distinct") for side in both),
            Cell.number(metrics.rsum),
            *(
                Cell.number(side.rsum_of.get(name) if side else None)
                for side, names in zip(both, selections, strict=True)
                for name in names
            ),
        ]
        for (run, metrics), both in zip(measured, sides, strict=True)
    ]
    return Table("Sets of the methods", columns, rows)


def _variance(side: ElementMetrics | None) -> Cell:
    if side is None:
        return Cell()
    value = side.log_circular_variance
    return Cell(f"{value:.2f}", value, badges=("collapsed",) if value < COLLAPSED else ())


def _size_cell(side: ElementMetrics | None, name: str) -> Cell:
    value = getattr(side, name, None)
    if side is None or value is None:
        return Cell()
    return Cell(f"{value:.1f} of {sum('+' not in name for name in side.rsum_of)}", value)


def _squared(measured: Sequence[tuple[Run, SetMetrics]]) -> Note:
    texts = []
    for run, metrics in measured:
        sides = (metrics.images, metrics.texts)
        values = [side.log_circular_variance_squared if side else None for side in sides]
        shown = " / ".join("-" if value is None else f"{value:.2f}" for value in values)
        texts.append(f"{run.preset} {shown}")
    return Note(
        "MaxMatch squares the norm: log(1 - ‖mean‖²). DivE and the table above use log(1 - "
        f"‖mean‖). With the squared norm our values are, images / texts: {'; '.join(texts)}."
    )


def _partners(measured: Sequence[tuple[Run, SetMetrics]]) -> list[Block]:
    """The rsum of each image element alone, and of the text element with the largest mean cosine
    (MaxMatch, section 4.4); nothing if no method has sets on both sides."""
    listed = []
    for run, metrics in measured:
        if not (run.sets and metrics.images and metrics.texts):
            continue
        images, texts, pairs = metrics.images.rsum_of, metrics.texts.rsum_of, []
        for number, cosines in enumerate(run.sets.pairs.cosine, start=1):
            partner = str(1 + max(range(len(cosines)), key=cosines.__getitem__))
            if (image := str(number)) in images and partner in texts:
                both = f"{images[image]:.1f} and {texts[partner]:.1f}"
                pairs.append(f"image {image} with text {partner} ({both})")
        listed.append(f"{run.preset}: {', '.join(pairs)}")
    note = Note(
        "In MaxMatch's table 4 each image element alone has the rsum of one text element alone: "
        "the elements match in pairs. Ours, each image element with the text element that is the "
        f"most similar one on average (rsum of each alone): {'; '.join(listed)}."
    )
    return [note] if listed else []


def plane(name: str, projection: Projection) -> Plane:
    """The points of each element of each modality. Images are drawn last, because their points are
    usually fewer."""
    modalities: tuple[Modality, ...] = ("texts", "images")
    sides = [(modality, getattr(projection, modality)) for modality in modalities]
    return Plane(
        name,
        [
            Cloud(element, modality, "".join(f"M{x} {PLANE_SIDE - y}h0" for x, y in points))
            for modality, side in sides
            for element, points in enumerate(zip(*side.places, strict=True))
        ],
        " and ".join(
            f"{sum(map(len, side.places)):,} of {side.vectors:,} vectors of {modality}"
            for modality, side in reversed(sides)
        ),
    )


SECTIONS = [Section("Sets", "sets", 140, "Sets of elements", section, link="Sets")]
