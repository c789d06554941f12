"""The studies of all models of a data set side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from manymatch.reporting.blocks import Block, Heading, Note, View
from manymatch.reporting.chart import Chart, LinearAxis, Series, line_chart
from manymatch.reporting.graph_drawing import draw
from manymatch.reporting.queries import (
    Answer,
    AskedImage,
    Graph,
    Picker,
    Question,
    Quote,
    Ranking,
    Rankings,
)
from manymatch.reporting.table import Cell, Column, Table
from manymatch.results import studies as results_of
from manymatch.results.all_results import AllResults
from manymatch.results.clusters import Clusters
from manymatch.results.studies import EntityQuery, GraphError, Studies, Study, StudyTable

ByPreset = dict[str, Study[Any]]
"""One study of several models."""

_DRAWN = ("reranking", "Validation")
"""The study and the table that is drawn as a chart."""


def section(results: AllResults) -> View | None:
    blocks = [*left_out(results, Studies), *blocks_of(results.studies)]
    return View("Studies", "Studies", blocks) if blocks else None


def left_out(results: AllResults, kind: type[Studies] | type[Clusters]) -> list[Block]:
    """A note that names the results of `kind` that another model made than the evaluated one."""
    outdated = [result for result in results.outdated if isinstance(result, kind)]
    names = ", ".join(result.preset for result in outdated)
    remedies = " ".join(result.remedy.format(**result.model_dump()) for result in outdated)
    text = f"Not shown, because these models were trained anew since then: {names}. {remedies}"
    return [Note(text)] if outdated else []


def blocks_of(results: Sequence[Studies]) -> list[Block]:
    """Every study with all models that it was made of."""
    named = studies_by_name(results)
    return [block for name, studies in named.items() for block in study_blocks(name, studies)]


def studies_by_name(results: Sequence[Studies]) -> dict[str, ByPreset]:
    """The studies of all models, by the study's name and the model's preset. The preset is followed
    by the split if the models were studied on different splits."""
    named: dict[str, ByPreset] = {}
    one_split = len({studied.split for studied in results}) == 1
    for studied in results:
        model = studied.preset if one_split else f"{studied.preset} ({studied.split})"
        for name, study in studied.studies.present().items():
            named.setdefault(name, {})[model] = study
    return named


def study_blocks(name: str, studies: ByPreset) -> Iterator[Block]:
    """One study: what was done, the tables and the chart of all models, and samples."""
    yield Heading(next(iter(studies.values())).title, anchor=f"study-{name}")
    abouts = {study.about for study in studies.values()}
    if len(abouts) == 1:
        yield Note(abouts.pop())
    else:
        yield from (Note(f"{preset}: {study.about}") for preset, study in studies.items())
    tables = [(preset, table) for preset, study in studies.items() for table in study.tables]
    drawn = {preset: table for preset, table in tables if (name, table.title) == _DRAWN}
    yield from joined_tables([pair for pair in tables if pair[1] not in drawn.values()])
    if chart := _chart(drawn):
        yield chart
    samples = _SAMPLES.get(name)
    if samples:
        yield from samples(studies)


def joined_tables(tables: list[tuple[str, StudyTable]]) -> list[Table]:
    """Tables of several models; tables of equal title and columns become one."""
    joined: dict[tuple[str, ...], Table] = {}
    for preset, table in tables:
        columns = [Column("Method", numeric=False)] + [
            Column(title, numeric=not any(isinstance(row[i], str) for row in table.rows))
            for i, title in enumerate(table.columns)
        ]
        whole = joined.setdefault(
            (table.title, *table.columns), Table(table.title, columns, [], caption=True)
        )
        whole.rows.extend([Cell(preset), *map(_cell, row)] for row in table.rows)
    return list(joined.values())


def _cell(value: results_of.Cell) -> Cell:
    if value is None or isinstance(value, str):
        return Cell(value or "")
    return Cell(f"{value:,.10g}", value)


def _chart(tables: dict[str, StudyTable]) -> Chart | None:
    """The second column over the first, a line for each model; None without numbers."""
    number = {preset: style for style, preset in enumerate(tables)}
    series = []
    for preset, table in tables.items():
        rows = [(row[0], row[1]) for row in table.rows]
        points = [(x, y) for x, y in rows if isinstance(x, float) and isinstance(y, float)]
        if points:
            best, at = max((y, x) for x, y in points)
            summary = f"best {best:g} at {at:g}"
            labels = [f"{y:g} at {x:g}" for x, y in points]
            series.append(Series(preset, number[preset], points, summary, labels))
    if not series:
        return None
    first = next(iter(tables.values()))
    axis = LinearAxis([x for line in series for x, _ in line.points])
    title = f"{first.title} {first.columns[1]}"
    return line_chart(title, series, first.columns[0], x_axis=axis)


def _group_samples(studies: ByPreset, key: str) -> list[dict[str, Any]]:
    """The samples of equal `key` together, each by its preset, in the order of the first models."""
    samples: dict[str, dict[str, Any]] = {}
    for preset, study in studies.items():
        for sample in study.samples:
            samples.setdefault(getattr(sample, key), {})[preset] = sample
    return list(samples.values())


def rich_captions(studies: ByPreset) -> list[Block]:
    """Captions with large scene graphs, and the rank of their image by each model."""
    rows = []
    for samples in _group_samples(studies, "caption_id"):
        first = next(iter(samples.values()))
        ranks = [samples[preset].rank if preset in samples else None for preset in studies]
        parts = first.attributes_and_relations
        rows.append([Cell(first.caption), Cell(str(parts), parts), *map(_cell, ranks)])
    columns = [Column("Caption", numeric=False), Column("Parts"), *map(Column, studies)]
    title = "The captions with most parts, and the rank of their image"
    return [Table(title, columns, rows, caption=True)]


def entity_queries(studies: ByPreset) -> list[Block]:
    """Images, and the entities that each model ranked first."""
    questions = []
    for samples in _group_samples(studies, "image_id"):
        first: EntityQuery = next(iter(samples.values()))
        rankings = [
            Ranking(
                preset,
                f"{sum(e.true for e in query.entities)} right of {len(query.entities)}",
                [
                    Answer("own" if e.true else "wrong", e.score, e.entity, rank=rank)
                    for rank, e in enumerate(query.entities, start=1)
                ],
            )
            for preset, query in samples.items()
        ]
        asked = AskedImage(first.thumbnail, first.image_id, first.captions)
        blocks = [asked, Rankings("Entities retrieved by each method", rankings)]
        questions.append(Question(first.image_id, blocks, first.thumbnail))
    note = Note(
        "An entity is right if the image's own captions name it. Another entity may still be in "
        "the picture."
    )
    return [note, Picker("entities", "image", questions, pictures=True)] if questions else []


def graph_errors(studies: ByPreset) -> list[Block]:
    """Scene graphs before and after an error. Every model gets the same errors, so those of the
    first model are shown."""
    errors: list[GraphError] = next(iter(studies.values())).samples
    questions = [
        Question(
            f"{sample.error}: {sample.caption}",
            [
                Quote(sample.caption),
                Graph("Scene graph", draw(sample.before)),
                Graph(f"With an error: {sample.error}", draw(sample.after)),
            ],
        )
        for sample in errors
    ]
    return [Picker("errors", "error", questions)] if questions else []


_SAMPLES = {
    "rich_captions": rich_captions,
    "entity_retrieval": entity_queries,
    "parse_errors": graph_errors,
}
"""What draws the samples of the studies that have samples."""
