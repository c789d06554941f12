"""The ranks of the first positives: R@K over K, and the hardest of the sampled queries."""

import statistics
from collections.abc import Sequence

from manymatch.reporting.chart import LogAxis, Series, line_chart, styles
from manymatch.reporting.page import Section, method_address, page_address
from manymatch.reporting.sections.samples import MAX_QUERIES, is_own_data
from manymatch.reporting.table import Block, Cell, Column, Grid, Note, Table
from manymatch.results.all_results import AllResults
from manymatch.results.retrieval import CaptionQuery, ImageQuery
from manymatch.results.runs import WAYS, Direction, Run, recall_at

_KNOWN = (1, 5, 10)
"""The K for which the metrics hold R@K."""

_DRAWN = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)


def recall_curve(results: AllResults) -> list[Block]:
    """Both directions, a line for each run."""
    if not results.runs:
        return []
    number = styles(results.runs)
    charts = []
    for way, title in WAYS.items():
        series = []
        for run in results.runs:
            numbers, ranks = run.metrics.numbers(), run.positive_ranks[way]
            recalls = {k: numbers[f"{way}.r{k}"] for k in _KNOWN}
            if ranks:
                items = run.provenance.captions if way == "i2t" else run.provenance.images
                recalls |= {k: recall_at(ranks, k) for k in _DRAWN if k <= items}
            points = sorted(recalls.items())
            labels = [f"R@{k} {value:.1f}" for k, value in points]
            series.append(Series(run.preset, number[run.preset], points, labels[-1], labels))
        axis = LogAxis([k for line in series for k, _ in line.points])
        charts.append(line_chart(f"R@K, {title}", series, "K", x_axis=axis))
    note = Note(
        "Percent of queries with at least one of their pairs among the first K answers. The "
        "values between 1, 5 and 10 and beyond 10 come from the tables of ranks. A run without a "
        "usable table has only the three values of its metrics."
    )
    return [Grid(charts, "wide"), note]


_SHOWN, _OWN_SHOWN = 5, 20
_UNKNOWN = (1, "-")
"""The rank of a query that a run did not sample."""

Sampled = list[tuple[Run, Sequence[ImageQuery | CaptionQuery]]]
"""Each run with its sampled queries."""


def hardest(results: AllResults) -> list[Block]:
    """The hardest images and captions, with the rank of the first positive by each run."""
    images: Sampled = [(run, run.samples.images) for run in results.runs if run.samples]
    captions: Sampled = [(run, run.samples.captions) for run in results.runs if run.samples]
    added = any(query.rank for _, queries in (*images, *captions) for query in queries)
    compared = "random queries" + (" and each model's hardest of the whole split" if added else "")
    own = is_own_data(results.runs)
    advice = (
        " Look for wrong or vague captions, for the same photo twice, and for answers that are "
        "right too."
        if own
        else ""
    )
    note = Note(
        "The rank of the first caption or image of the query's own pair. Queries are ordered by "
        f"the mean rank of all runs. Compared are the sampled queries below: {compared}.{advice}"
    )
    tables = _table("Image", "i2t", images), _table("Caption", "t2i", captions)
    return [note, *tables] if images else []


def _table(title: str, way: Direction, sampled: Sampled) -> Table:
    own = is_own_data(run for run, _ in sampled)
    queries: dict[str, Cell] = {}
    for run, asked in sampled:
        for query in asked:
            anchor = f"{title.lower()}-{len(queries) + 1}"  # of the picker below
            href = page_address(run.dataset, "Queries", anchor)
            href = href if own or len(queries) < MAX_QUERIES else ""
            thumbnail = query.thumbnail if isinstance(query, ImageQuery) else None
            cell = Cell(query.label, href=href, thumbnail=thumbnail)
            queries.setdefault(query.id, cell)
    run_ranks = [_ranks(run, way, queries) for run, queries in sampled]
    ranks = {key: [known.get(key, _UNKNOWN) for known in run_ranks] for key in queries}
    hardest = sorted(queries, key=lambda key: -statistics.fmean(rank for rank, _ in ranks[key]))
    number = styles([run for run, _ in sampled])
    columns = [Column(title, numeric=False)]
    for run, _ in sampled:
        href = method_address(run.dataset, run.preset)
        columns.append(Column(run.preset, style=number[run.preset], href=href))
    rows = [
        [queries[key], *(Cell(text, rank) for rank, text in ranks[key])]
        for key in hardest[: _OWN_SHOWN if own else _SHOWN]
    ]
    return Table(f"Hardest {title.lower()}s", columns, rows, caption=True)


def _ranks(
    run: Run, way: Direction, queries: Sequence[ImageQuery | CaptionQuery]
) -> dict[str, tuple[int, str]]:
    """Each query's rank as number and text: from the table of ranks, the sample, or the sampled
    answers. If none of these is a positive, the number is the next rank and the text says so."""
    exact = {query.id: query.rank for query in queries if query.rank}
    exact |= run.positive_ranks[way] or {}
    marks = {query.id: [answer.mark for answer in query.retrieved] for query in queries}
    exact = {key: own.index("own") + 1 for key, own in marks.items() if "own" in own} | exact
    later = {key: (len(own) + 1, f"> {len(own)}") for key, own in marks.items()}
    return later | {key: (rank, str(rank)) for key, rank in exact.items()}


SECTIONS = [
    Section("Results", "recall-curve", 20, "Recall over K", recall_curve, link="Recall"),
    Section("Queries", "hardest", 110, "Hardest queries", hardest, link="Hardest"),
]
