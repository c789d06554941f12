"""The probes of all models of a data set side by side, and the classes of trained SwAMPs."""

from collections.abc import Sequence
from typing import Any

from manymatch.reporting.chart import Chart, LinearAxis, Series, line_chart
from manymatch.reporting.graph_drawing import draw
from manymatch.reporting.page import Section
from manymatch.reporting.sections.samples import (
    Answer,
    AskedImage,
    Graph,
    Picker,
    Question,
    Quote,
    Ranking,
    Rankings,
)
from manymatch.reporting.table import Block, Cell, Column, Heading, Note, Table
from manymatch.results import probes as results_of
from manymatch.results.all_results import AllResults
from manymatch.results.probes import (
    Cluster,
    Clusters,
    EntityQuery,
    GraphError,
    Keyword,
    Probe,
    Probes,
    ProbeTable,
)

ByPreset = dict[str, Probe[Any]]
"""One probe of several models."""

_DRAWN = ("reranking", "Validation")
"""The probe and the table that is drawn as a chart."""
_MAX_CLASSES, _MAX_WORDS = 12, 5
"""The most classes of a model, and words of a class, that are shown."""


def section(results: AllResults) -> list[Block]:
    return [*left_out(results, Probes), *blocks_of(results.current(Probes))]


def left_out(results: AllResults, kind: type[Probes] | type[Clusters]) -> list[Block]:
    """A note that names the results of `kind` that another model made than the evaluated one."""
    outdated = results.current(kind, outdated=True)
    names = ", ".join(result.preset for result in outdated)
    remedies = " ".join(result.remedy.format(**result.model_dump()) for result in outdated)
    text = f"Not shown, because these models were trained anew since then: {names}. {remedies}"
    return [Note(text)] if outdated else []


def blocks_of(results: Sequence[Probes]) -> list[Block]:
    """Every probe with all models that it was made of. The preset of a model is followed by the
    split if the models were probed on different splits."""
    named: dict[str, ByPreset] = {}
    one_split = len({probed.split for probed in results}) == 1
    for probed in results:
        model = probed.preset if one_split else f"{probed.preset} ({probed.split})"
        for name, probe in probed.probes.present().items():
            named.setdefault(name, {})[model] = probe
    return [block for name, probes in named.items() for block in _probe_blocks(name, probes)]


def _probe_blocks(name: str, probes: ByPreset) -> list[Block]:
    """One probe: what was done, the tables and the chart of all models, and samples."""
    abouts = {probe.about for probe in probes.values()}
    texts = abouts if len(abouts) == 1 else [f"{key}: {one.about}" for key, one in probes.items()]
    tables = [(preset, table) for preset, probe in probes.items() for table in probe.tables]
    drawn = {preset: table for preset, table in tables if (name, table.title) == _DRAWN}
    return [
        Heading(next(iter(probes.values())).title, anchor=f"probe-{name}"),
        *map(Note, texts),
        *joined_tables([pair for pair in tables if pair[1] not in drawn.values()]),
        *_charts(drawn),
        *(_SAMPLES[name](probes) if name in _SAMPLES else []),
    ]


def joined_tables(tables: list[tuple[str, ProbeTable]]) -> list[Table]:
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


def _charts(tables: dict[str, ProbeTable]) -> list[Chart]:
    """The second column over the first, a line for each model; none without numbers."""
    series = []
    for style, (preset, table) in enumerate(tables.items()):
        rows = [(row[0], row[1]) for row in table.rows]
        points = [(x, y) for x, y in rows if isinstance(x, float) and isinstance(y, float)]
        if points:
            best, at = max((y, x) for x, y in points)
            labels = [f"{y:g} at {x:g}" for x, y in points]
            series.append(Series(preset, style, points, f"best {best:g} at {at:g}", labels))
    if not series:
        return []
    first = next(iter(tables.values()))
    axis = LinearAxis([x for line in series for x, _ in line.points])
    title = f"{first.title} {first.columns[1]}"
    return [line_chart(title, series, first.columns[0], x_axis=axis)]


def _group_samples(probes: ByPreset, key: str) -> list[dict[str, Any]]:
    """The samples of equal `key` together, each by its preset, in the order of the first models."""
    samples: dict[str, dict[str, Any]] = {}
    for preset, probe in probes.items():
        for sample in probe.samples:
            samples.setdefault(getattr(sample, key), {})[preset] = sample
    return list(samples.values())


def rich_captions(probes: ByPreset) -> list[Block]:
    """Captions with large scene graphs, and the rank of their image by each model."""
    rows = []
    for samples in _group_samples(probes, "caption_id"):
        first = next(iter(samples.values()))
        ranks = [samples[preset].rank if preset in samples else None for preset in probes]
        parts = first.attributes_and_relations
        rows.append([Cell(first.caption), Cell(str(parts), parts), *map(_cell, ranks)])
    columns = [Column("Caption", numeric=False), Column("Parts"), *map(Column, probes)]
    title = "The captions with most parts, and the rank of their image"
    return [Table(title, columns, rows, caption=True)]


def entity_queries(probes: ByPreset) -> list[Block]:
    """Images, and the entities that each model ranked first."""
    questions = []
    for samples in _group_samples(probes, "image_id"):
        first: EntityQuery = next(iter(samples.values()))
        rankings = [
            Ranking(
                preset,
                f"{sum(e.true for e in query.entities)} named of {len(query.entities)}",
                [
                    Answer("own" if e.true else "unjudged", e.score, e.entity, rank=rank)
                    for rank, e in enumerate(query.entities, start=1)
                ],
            )
            for preset, query in samples.items()
        ]
        asked = AskedImage(first.thumbnail, first.image_id, first.captions)
        blocks = [asked, Rankings("Entities retrieved by each method", rankings)]
        questions.append(Question(first.image_id, blocks, first.thumbnail))
    note = Note(
        "An entity is positive if the image's own captions name it. Nobody judged the others, "
        "which may be in the picture."
    )
    return [note, Picker("entities", "image", questions, pictures=True)] if questions else []


def graph_errors(probes: ByPreset) -> list[Block]:
    """Scene graphs before and after an error. Every model gets the same errors, so those of the
    first model are shown."""
    errors: list[GraphError] = next(iter(probes.values())).samples
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
"""What draws the samples of the probes that have samples."""


class ClusterGrid(Block):
    """Classes side by side: each with its title, and its words of each kind."""

    classes: list[tuple[str, list[str], Cluster]]


def clusters(results: AllResults) -> list[Block]:
    """The classes of each SwAMP: keywords, captions and pictures."""
    blocks = left_out(results, Clusters)
    for model in results.current(Clusters):
        classes = [
            (
                f"Class {one.number}: {_count(len(one.captions), 'caption')}, "
                f"{_count(len(one.images), 'image')}",
                [_words(one.nouns), _words(one.verbs)],
                one,
            )
            for one in model.classes[:_MAX_CLASSES]
        ]
        blocks += [_classes_heading(model), ClusterGrid(classes)]
    note = Note(
        "SwAMP assigns images and captions to classes, and learns the class of each sample from "
        "the sample's partner. No class was labelled by a person. The page shows the classes "
        "with most captions, with their most frequent nouns and verbs (and the number of "
        "captions that have the word)."
    )
    return [note, *blocks] if blocks else []


def _classes_heading(model: Clusters) -> Heading:
    return Heading(
        model.preset,
        f"{model.split}: {model.used.captions:,} of {model.n_classes:,} classes hold captions, "
        f"{model.used.images:,} hold images; {model.agreement:.1f}% of captions are in the "
        "class of their image",
    )


def class_blocks(model: Clusters) -> list[Block]:
    """The classes with most captions, for a terminal."""
    rows = [
        [
            *(Cell.number(n, 0) for n in (one.number, len(one.captions), len(one.images))),
            *(Cell(_words(words)) for words in (one.nouns, one.verbs)),
        ]
        for one in model.classes[:_MAX_CLASSES]
    ]
    columns = [Column(head) for head in ("Class", "Captions", "Images")]
    columns += [Column(head, numeric=False) for head in ("Nouns", "Verbs")]
    title = "The classes with most captions"
    return [_classes_heading(model), Table(title, columns, rows, caption=True)]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _words(keywords: Sequence[Keyword]) -> str:
    return ", ".join(f"{word} ({count})" for word, count in keywords[:_MAX_WORDS])


_CLASSES = "Classes without labels"
SECTIONS = [
    Section("Probes", "probes", 190, "Probes", section, (Probes,)),
    Section("Probes", "clusters", 200, _CLASSES, clusters, (Clusters,), "Classes"),
]
