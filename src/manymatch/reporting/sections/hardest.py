"""The hardest of the sampled queries: those whose first positive has the worst rank."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from manymatch.reporting.blocks import Block, Note, View
from manymatch.reporting.leaderboard import styles
from manymatch.reporting.table import Cell, Column, Table
from manymatch.results.all_results import AllResults
from manymatch.results.retrieval import RetrievedCaption, RetrievedImage
from manymatch.results.runs import Direction, Run
from manymatch.results.samples import ImageQuery

_SHOWN = 5
_UNKNOWN = (1, "-")
"""The rank of a query that a run did not sample."""


def section(results: AllResults) -> View | None:
    """The hardest images and captions, with the rank of the first positive by each run."""
    runs = [run for run in results.runs if run.samples]
    if not runs:
        return None
    images = {query.image_id: query for run in runs if run.samples for query in run.samples.images}
    captions = {
        query.caption_id: query for run in runs if run.samples for query in run.samples.captions
    }
    blocks: list[Block] = [
        Note(
            "The rank of the first caption or image of the query's own pair. Queries are ordered "
            "by the mean rank of all runs. Only queries of the random sample below are compared."
        ),
        _table("Images", "i2t", {key: _image_cell(query) for key, query in images.items()}, runs),
        _table("Captions", "t2i", {key: Cell(q.caption) for key, q in captions.items()}, runs),
    ]
    return View("Hardest queries", "Hardest", blocks)


def _image_cell(query: ImageQuery) -> Cell:
    return Cell(query.captions[0] if query.captions else query.image_id, thumbnail=query.thumbnail)


def _table(title: str, way: Direction, queries: dict[str, Cell], runs: Sequence[Run]) -> Table:
    by_run = [_ranks(run, way) for run in runs]
    ranks = {key: [known.get(key, _UNKNOWN) for known in by_run] for key in queries}
    hardest = sorted(queries, key=lambda key: -statistics.fmean(rank for rank, _ in ranks[key]))
    number = styles(runs)
    return Table(
        f"Hardest {title.lower()}",
        [
            Column(title[:-1], numeric=False),
            *(Column(run.preset, style=number[run.preset]) for run in runs),
        ],
        [
            [queries[key], *(Cell(text, rank) for rank, text in ranks[key])]
            for key in hardest[:_SHOWN]
        ],
        caption=True,
    )


def _ranks(run: Run, way: Direction) -> dict[str, tuple[int, str]]:
    """Each query's rank as number and text: from the run file, or else from the sample. If none of
    the known answers is a positive, the number is the next rank and the text says so."""
    if known := run.positive_ranks[way]:
        return {key: _rank(rank, known.depth) for key, rank in known.ranks.items()}
    ranks = {}
    for query_id, retrieved in _sampled(run, way):
        marks = [answer.mark for answer in retrieved]
        rank = marks.index("own") + 1 if "own" in marks else None
        ranks[query_id] = _rank(rank, len(marks))
    return ranks


def _rank(rank: int | None, depth: int) -> tuple[int, str]:
    return (depth + 1, f"> {depth}") if rank is None else (rank, str(rank))


def _sampled(
    run: Run, way: Direction
) -> Sequence[tuple[str, Sequence[RetrievedCaption | RetrievedImage]]]:
    assert run.samples is not None
    if way == "i2t":
        return [(query.image_id, query.retrieved) for query in run.samples.images]
    return [(query.caption_id, query.retrieved) for query in run.samples.captions]
