"""Sampled queries and what each method retrieved."""

from collections.abc import Iterable, Sequence

from manymatch.reporting.graph_drawing import draw
from manymatch.reporting.page import Section, method_address
from manymatch.reporting.queries import (
    AskedImage,
    Graph,
    Legend,
    Picker,
    Question,
    Quote,
    Ranking,
    Rankings,
    answer_of,
)
from manymatch.reporting.table import Block, Note
from manymatch.results.all_results import AllResults
from manymatch.results.retrieval import (
    CaptionQuery,
    ImageQuery,
    Mark,
    RetrievedCaption,
    RetrievedImage,
)
from manymatch.results.runs import Run

MAX_QUERIES, MAX_ANSWERS = 20, 10
"""The most queries of a direction, and answers of a method, that a page shows. Of a data set of
one's own all queries are shown."""

Sampled = dict[str, dict[str, ImageQuery | CaptionQuery]]
"""The queries of one direction by the query's id and by the preset of the run."""


def images(results: AllResults) -> list[Block]:
    """The section; a note if the samples are not on this machine."""
    questions = []
    sampled = list(_rankings(results, "images"))
    for query, rankings in sampled:
        assert isinstance(query, ImageQuery)
        asked = AskedImage(query.thumbnail, query.image_id, query.captions)
        answers = Rankings("Captions retrieved by each method", rankings)
        questions.append(Question(query.label, [asked, answers], query.thumbnail))
    if not questions:
        missing = (
            f"Sample queries of {run.dataset} are not on this machine. 'dvc repro' makes them."
            for run in results.runs[:1]
        )
        return [*map(Note, missing)]
    legend = Legend(_marks(sampled))
    return [legend, Picker("image", "image", questions, pictures=True)]


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


def _rankings(
    results: AllResults, kind: str
) -> Iterable[tuple[ImageQuery | CaptionQuery, list[Ranking]]]:
    """The first sampled queries of all runs, each with the ranking of every run."""
    runs = [run for run in results.runs if run.samples]
    sampled: Sampled = {}
    for run in runs:
        for query in getattr(run.samples, kind):
            sampled.setdefault(query.id, {})[run.preset] = query
    for queries in list(sampled.values())[: None if is_own_data(runs) else MAX_QUERIES]:
        first = next(iter(queries.values()))
        # Of a query that a run did not sample, its table of ranks may know the rank.
        unknown = first.model_copy(update={"retrieved": [], "rank": None})
        yield first, [method_ranking(run, queries.get(run.preset, unknown)) for run in runs]


def method_ranking(run: Run, query: ImageQuery | CaptionQuery, count: int = MAX_ANSWERS) -> Ranking:
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


_OF_IMAGES, _OF_CAPTIONS = "Captions retrieved for an image", "Images retrieved for a caption"
SECTIONS = [
    Section("Queries", "image-queries", 120, _OF_IMAGES, images, link="Images"),
    Section("Queries", "caption-queries", 130, _OF_CAPTIONS, captions, link="Captions"),
]
