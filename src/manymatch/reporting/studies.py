"""The studies of all models of a data set side by side, ready for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from manymatch.reporting.charts import STYLES, Axis, Chart, Line, Tick
from manymatch.reporting.graph_drawing import Drawing, draw
from manymatch.reporting.queries import Thumbnails
from manymatch.results.studies import (
    Cell,
    EntityQuery,
    GraphError,
    RichCaption,
    Studies,
    Study,
    StudyTable,
)

_Sample = TypeVar("_Sample", RichCaption, EntityQuery, GraphError)
Of = list[tuple[str, Study[Any]]]
"""One study of several models, by their presets."""
Tables = list[tuple[str, StudyTable]]
"""Tables of several models, by their presets."""

_DRAWN = "reranking", "Validation"
"""The study and the table that is shown as a chart."""


@dataclass(frozen=True)
class JoinedTable:
    """Equal tables of several models below each other; cells as texts, with whether each is a
    number."""

    title: str
    columns: list[str]
    rows: list[tuple[str, list[tuple[str, bool]]]]


@dataclass(frozen=True)
class RichRow:
    """A caption that says much, and the rank of its image by each model."""

    caption: str
    said: int
    ranks: list[int | None]


@dataclass(frozen=True)
class EntityPanel:
    """An image, and what each model finds in it."""

    query: EntityQuery
    picture: int | None
    answers: list[tuple[str, EntityQuery]]


@dataclass(frozen=True)
class ErrorPanel:
    """A scene graph before and after an error."""

    sample: GraphError
    before: Drawing
    after: Drawing


@dataclass(frozen=True)
class StudyView:
    """One study: what was done (by model, where that differs), its numbers, and cases."""

    name: str
    title: str
    about: list[tuple[str | None, str]]
    presets: list[str]
    tables: list[JoinedTable]
    chart: Chart | None = None
    rich: list[RichRow] = field(default_factory=list)
    entities: list[EntityPanel] = field(default_factory=list)
    errors: list[ErrorPanel] = field(default_factory=list)


def views(studied: Sequence[Studies], dataset: str, thumbnails: Thumbnails) -> list[StudyView]:
    """Of one data set's models, a view a study."""
    by_name: dict[str, Of] = {}
    for each in (found for found in studied if found.dataset == dataset):
        for name, study in each.studies.present().items():
            by_name.setdefault(name, []).append((each.preset, study))
    return [_view(name, found, thumbnails) for name, found in by_name.items()]


def _view(name: str, found: Of, thumbnails: Thumbnails) -> StudyView:
    tables = [(preset, table) for preset, study in found for table in study.tables]
    drawn = [each for each in tables if (name, each[1].title) == _DRAWN]
    return StudyView(
        name=name,
        title=found[0][1].title,
        about=_about(found),
        presets=[preset for preset, _ in found],
        tables=_joined([each for each in tables if each not in drawn]),
        chart=_chart(drawn),
        rich=_rich(found) if name == "rich_captions" else [],
        entities=_entities(found, thumbnails) if name == "entity_retrieval" else [],
        errors=_errors(found) if name == "parse_errors" else [],
    )


def _about(found: Of) -> list[tuple[str | None, str]]:
    """Once if it is the same of all models, else with each model's name."""
    texts = {study.about for _, study in found}
    if len(texts) == 1:
        return [(None, texts.pop())]
    return [(preset, study.about) for preset, study in found]


def _joined(tables: Tables) -> list[JoinedTable]:
    """Tables of equal title and columns become one, in the order in which they first come."""
    joined: dict[tuple[str, ...], JoinedTable] = {}
    for preset, table in tables:
        new = JoinedTable(table.title, table.columns, [])
        whole = joined.setdefault((table.title, *table.columns), new)
        whole.rows.extend((preset, [_shown(cell) for cell in row]) for row in table.rows)
    return list(joined.values())


def _shown(cell: Cell) -> tuple[str, bool]:
    if isinstance(cell, str):
        return cell, False
    return "-" if cell is None else f"{cell:,.10g}", True


def _chart(tables: Tables) -> Chart | None:
    """The second column over the first, a line a model; None without numbers."""
    series = [(preset, _points(table)) for preset, table in tables]
    whole = [(preset, points) for preset, points in series if points]
    if not whole:
        return None
    x_axis = Axis([x for _, points in whole for x, _ in points])
    y_axis = Axis([y for _, points in whole for _, y in points])
    lines = [
        _line(preset, number % STYLES, points, x_axis, y_axis)
        for number, (preset, points) in enumerate(whole)
    ]
    y_ticks = [Tick(tick.label, 100 - tick.at) for tick in y_axis.ticks()]
    first = tables[0][1]
    x_title, y_title = first.columns[:2]
    return Chart(f"{first.title} {y_title}", lines, x_axis.ticks(), y_ticks, unit=x_title)


def _points(table: StudyTable) -> list[tuple[float, float]]:
    pairs = [(row[0], row[1]) for row in table.rows]
    return [(x, y) for x, y in pairs if isinstance(x, float) and isinstance(y, float)]


def _line(
    name: str, style: int, points: Sequence[tuple[float, float]], x_axis: Axis, y_axis: Axis
) -> Line:
    places = [(x_axis.at(x) * 10, 1000 - y_axis.at(y) * 10) for x, y in points]
    dots = [
        (f"{name}: {y:g} at {x:g}", round(left, 1), round(top, 1))
        for (x, y), (left, top) in zip(points, places, strict=True)
    ]
    best, at = max((y, x) for x, y in points)
    path = "M" + "L".join(f"{left:.1f} {top:.1f}" for left, top in places)
    return Line(name, style, path, dots, f"best {best:g} at {at:g}")


def _by_key(found: Of, key: str) -> dict[str, dict[str, Any]]:
    """Samples of one key (by the first models' order), each by the preset that has it."""
    samples: dict[str, dict[str, Any]] = {}
    for preset, study in found:
        for sample in study.samples:
            samples.setdefault(getattr(sample, key), {})[preset] = sample
    return samples


def _first(samples: dict[str, _Sample]) -> _Sample:
    return next(iter(samples.values()))


def _rich(found: Of) -> list[RichRow]:
    return [
        RichRow(
            _first(samples).caption,
            _first(samples).attributes_and_relations,
            [samples[preset].rank if preset in samples else None for preset, _ in found],
        )
        for samples in _by_key(found, "caption_id").values()
    ]


def _entities(found: Of, thumbnails: Thumbnails) -> list[EntityPanel]:
    return [
        EntityPanel(query, thumbnails.number(query.thumbnail), list(samples.items()))
        for samples in _by_key(found, "image_id").values()
        for query in [_first(samples)]
    ]


def _errors(found: Of) -> list[ErrorPanel]:
    """Of the first model alone: every model gets the same errors."""
    samples: list[GraphError] = found[0][1].samples
    return [ErrorPanel(sample, draw(sample.before), draw(sample.after)) for sample in samples]
