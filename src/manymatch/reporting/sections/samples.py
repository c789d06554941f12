"""Queries with their answers, as blocks of a page: what was asked, and what each method retrieved.
The sections of the sampled queries and of the hardest ones, and R@K over K of all queries."""

import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from manymatch.reporting.chart import LogAxis, Series, line_chart, styles
from manymatch.reporting.graph_drawing import Drawing, draw
from manymatch.reporting.page import Section, method_address, page_address
from manymatch.reporting.sections.leaderboard import run_columns
from manymatch.reporting.table import Block, Cell, Column, Grid, Note, Table
from manymatch.results.all_results import AllResults
from manymatch.results.retrieval import (
    CaptionQuery,
    ImageQuery,
    Mark,
    RetrievedCaption,
    RetrievedImage,
)
from manymatch.results.runs import WAYS, Direction, Run, recall_at

MAX_QUERIES, MAX_ANSWERS = 20, 10
"""The most queries of a direction, and answers of a method, that a page shows. Of a data set of
one's own all queries are shown."""
_HARDEST, _HARDEST_OF_OWN = 5, 20
"""The hardest queries that are shown, also of a data set of one's own."""
_KNOWN = (1, 5, 10)
"""The K for which the metrics hold R@K."""
_DRAWN = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
_UNKNOWN = (1, "-")
"""The rank of a query that a run did not sample."""

Query = ImageQuery | CaptionQuery


@dataclass(frozen=True)
class Question:
    """One query: its label in the picker (with a thumbnail, the label is only read aloud), and the
    blocks that answer the query."""

    label: str
    blocks: Sequence[Block]
    thumbnail: str | None = None


class Picker(Block):
    """Questions of which the page shows one at a time. `kind` is what is picked, e.g. "image"; with
    `pictures` the picker shows thumbnails instead of labels."""

    anchor: str
    kind: str
    questions: Sequence[Question]
    pictures: bool = False


class AskedImage(Block):
    """An image with its own captions."""

    thumbnail: str | None
    image_id: str
    captions: Sequence[str]


class Quote(Block):
    """A caption that was asked."""

    text: str


class Graph(Block):
    """The drawing of a scene graph; None: the graph has no object."""

    title: str
    drawing: Drawing | None


@dataclass(frozen=True)
class Answer:
    """A retrieved item: a text, or a picture if `text` is None. `notes` are small print."""

    mark: Mark
    score: float
    text: str | None = None
    thumbnail: str | None = None
    item_id: str = ""
    rank: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ranking:
    """The first answers of one method, which stands at `href`; `small` sums them up."""

    title: str
    small: str
    answers: Sequence[Answer]
    href: str = ""


class Rankings(Block):
    """The rankings of several methods side by side."""

    label: str
    rankings: Sequence[Ranking]


class Legend(Block):
    """What the marks of answers mean; `marks` are those that occur."""

    marks: Collection[Mark]


def answer_of(
    item: RetrievedCaption | RetrievedImage, rank: int | None = None, notes: Sequence[str] = ()
) -> Answer:
    """A retrieved caption or image as an answer."""
    if item.zeta is not None:
        labels = "1 label differs" if item.zeta == 1 else f"{item.zeta} labels differ"
        notes = (*notes, labels)
    text = item.caption if isinstance(item, RetrievedCaption) else None
    picture = None if isinstance(item, RetrievedCaption) else item.thumbnail
    return Answer(item.mark, item.score, text, picture, item.id, rank, (*notes,))


def images(results: AllResults) -> list[Block]:
    """The section; a note if the samples are not on this machine."""
    questions = []
    sampled = list(_rankings(results, "images"))
    for query, rankings in sampled:
        assert isinstance(query, ImageQuery)
        asked = AskedImage(query.thumbnail, query.image_id, query.captions)
        answers = Rankings("Captions retrieved by each method", rankings)
        questions.append(Question(query.label, [asked, answers], query.thumbnail))
    if questions:
        return [Legend(_marks(sampled)), Picker("image", "image", questions, pictures=True)]
    missing = "Sample queries of {} are not on this machine. 'dvc repro' makes them."
    return [Note(missing.format(run.dataset)) for run in results.runs[:1]]


def captions(results: AllResults) -> list[Block]:
    """The section; nothing if no caption was sampled."""
    questions = []
    sampled = list(_rankings(results, "captions"))
    for query, rankings in sampled:
        assert isinstance(query, CaptionQuery)
        drawing = draw(query.graph) if query.graph and query.graph.objects else None
        answers = Rankings("Images retrieved by each method", rankings)
        own = [AskedImage(query.thumbnail, query.image_id, [])] if query.image_id else []
        blocks = [Quote(query.caption), *own, Graph("Scene graph", drawing), answers]
        questions.append(Question(query.caption, blocks))
    picker = Picker("caption", "caption", questions)
    return [Legend(_marks(sampled)), picker] if questions else []


def _marks(sampled: Iterable[tuple[object, list[Ranking]]]) -> set[Mark]:
    """The marks of the answers that the section shows."""
    rankings = (ranking for _, rankings in sampled for ranking in rankings)
    return {answer.mark for ranking in rankings for answer in ranking.answers}


def is_own_data(runs: Iterable[Run]) -> bool:
    """Whether these runs are of a data set of one's own."""
    return any(run.samples and run.samples.near_duplicates for run in runs)


def _rankings(results: AllResults, kind: str) -> Iterable[tuple[Query, list[Ranking]]]:
    """The first sampled queries of all runs, each with the ranking of every run."""
    runs = [run for run in results.runs if run.samples]
    sampled: dict[str, dict[str, Query]] = {}
    for run in runs:
        for query in getattr(run.samples, kind):
            sampled.setdefault(query.id, {})[run.preset] = query
    for queries in list(sampled.values())[: None if is_own_data(runs) else MAX_QUERIES]:
        first = next(iter(queries.values()))
        # Of a query that a run did not sample, its table of ranks may know the rank.
        unknown = first.model_copy(update={"retrieved": [], "rank": None})
        yield first, [method_ranking(run, queries.get(run.preset, unknown)) for run in runs]


def method_ranking(run: Run, query: Query, count: int = MAX_ANSWERS) -> Ranking:
    """The first answers of a method (none: the method did not sample the query), with the rank of
    the first positive if it comes later."""
    items: Sequence[RetrievedCaption | RetrievedImage] = query.retrieved[:count]
    answers = [answer_of(item, rank) for rank, item in enumerate(items, start=1)]
    own, true = (sum(answer.mark == mark for answer in answers) for mark in ("own", "true"))
    small = f"{own} positive" + (f", {true} judged true" if true else "") + f" of {len(answers)}"
    small = small if answers else "not sampled by this run"
    known = run.positive_ranks["i2t" if isinstance(query, ImageQuery) else "t2i"]
    rank = query.rank or (known or {}).get(query.id)
    if rank and not own:
        small += f"; first positive at rank {rank}"
    return Ranking(run.preset, small, answers, method_address(run.dataset, run.preset))


def recall_curve(results: AllResults) -> list[Block]:
    """Both directions, a line for each run."""
    number = styles(results.runs)
    charts = []
    for way, title in WAYS.items() if results.runs else ():
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
    return [Grid(charts, "wide"), note] if charts else []


def hardest(results: AllResults) -> list[Block]:
    """The hardest images and captions, with the rank of the first positive by each run."""
    runs = [run for run in results.runs if run.samples]
    samples = [run.samples for run in runs if run.samples]
    images, captions = [one.images for one in samples], [one.captions for one in samples]
    every: list[Sequence[Query]] = [*images, *captions]
    added = any(query.rank for queries in every for query in queries)
    sampled = "random queries" + (" and each model's hardest of the whole split" if added else "")
    note = (
        "The rank of the first caption or image of the query's own pair. Queries are ordered by "
        f"the mean rank of all runs. The table compares the sampled queries below: {sampled}."
    )
    if is_own_data(runs):
        note += " Look for wrong or vague captions, for the same photo twice, and for answers that "
        note += "are right too."
    tables = _hardest("Image", "i2t", runs, images), _hardest("Caption", "t2i", runs, captions)
    return [Note(note), *tables] if runs else []


def _hardest(
    title: str, way: Direction, runs: Sequence[Run], sampled: Sequence[Sequence[Query]]
) -> Table:
    """One direction; `sampled` are the queries of each run."""
    own = is_own_data(runs)
    queries: dict[str, Cell] = {}
    for run, asked in zip(runs, sampled, strict=True):
        for query in asked:
            anchor = f"{title.lower()}-{len(queries) + 1}"  # of the picker below
            href = page_address(run.dataset, "Queries", anchor)
            href = href if own or len(queries) < MAX_QUERIES else ""
            thumbnail = query.thumbnail if isinstance(query, ImageQuery) else None
            cell = Cell(query.label, href=href, thumbnail=thumbnail)
            queries.setdefault(query.id, cell)
    run_ranks = [_ranks(run, way, asked) for run, asked in zip(runs, sampled, strict=True)]
    ranks = {key: [known.get(key, _UNKNOWN) for known in run_ranks] for key in queries}
    hardest = sorted(queries, key=lambda key: -statistics.fmean(rank for rank, _ in ranks[key]))
    rows = [
        [queries[key], *(Cell(text, rank) for rank, text in ranks[key])]
        for key in hardest[: _HARDEST_OF_OWN if own else _HARDEST]
    ]
    columns = [Column(title, numeric=False), *run_columns(runs)]
    return Table(f"Hardest {title.lower()}s", columns, rows, caption=True)


def _ranks(run: Run, way: Direction, queries: Sequence[Query]) -> dict[str, tuple[int, str]]:
    """Each query's rank as number and text: from the table of ranks, the sample, or the sampled
    answers. If none of these is a positive, the number is the next rank and the text says so."""
    exact = {query.id: query.rank for query in queries if query.rank}
    exact |= run.positive_ranks[way] or {}
    marks = {query.id: [answer.mark for answer in query.retrieved] for query in queries}
    exact = {key: own.index("own") + 1 for key, own in marks.items() if "own" in own} | exact
    later = {key: (len(own) + 1, f"> {len(own)}") for key, own in marks.items()}
    return later | {key: (rank, str(rank)) for key, rank in exact.items()}


_OF_IMAGES, _OF_CAPTIONS = "Captions retrieved for an image", "Images retrieved for a caption"
SECTIONS = [
    Section("Results", "recall-curve", 20, "Recall over K", recall_curve, link="Recall"),
    Section("Queries", "hardest", 110, "Hardest queries", hardest, link="Hardest"),
    Section("Queries", "image-queries", 120, _OF_IMAGES, images, link="Images"),
    Section("Queries", "caption-queries", 130, _OF_CAPTIONS, captions, link="Captions"),
]
