"""The hardest of the sampled queries: those whose first positive has the worst rank."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from manymatch.reporting.blocks import Note, View
from manymatch.reporting.leaderboard import styles
from manymatch.reporting.table import Cell, Column, Table
from manymatch.results.all_results import AllResults
from manymatch.results.runs import Direction, Run
from manymatch.results.samples import CaptionQuery, ImageQuery

_SHOWN = 5
_UNKNOWN = (1, "-")
"""The rank of a query that a run did not sample."""

Sampled = list[tuple[Run, Sequence[ImageQuery | CaptionQuery]]]
"""Each run with its sampled queries."""


def section(results: AllResults) -> View | None:
    """The hardest images and captions, with the rank of the first positive by each run."""
    images: Sampled = [(run, run.samples.images) for run in results.runs if run.samples]
    captions: Sampled = [(run, run.samples.captions) for run in results.runs if run.samples]
    note = Note(
        "The rank of the first caption or image of the query's own pair. Queries are ordered "
        "by the mean rank of all runs. Only queries of the random sample below are compared."
    )
    blocks = [note, _table("Image", "i2t", images), _table("Caption", "t2i", captions)]
    return View("Hardest queries", "Hardest", blocks) if images else None


def _table(title: str, way: Direction, sampled: Sampled) -> Table:
    queries = {query.id: _cell(query) for _, queries in sampled for query in queries}
    by_run = [_ranks(run, way, queries) for run, queries in sampled]
    ranks = {key: [known.get(key, _UNKNOWN) for known in by_run] for key in queries}
    hardest = sorted(queries, key=lambda key: -statistics.fmean(rank for rank, _ in ranks[key]))
    number = styles([run for run, _ in sampled])
    return Table(
        f"Hardest {title.lower()}s",
        [
            Column(title, numeric=False),
            *(Column(preset, style=style) for preset, style in number.items()),
        ],
        [
            [queries[key], *(Cell(text, rank) for rank, text in ranks[key])]
            for key in hardest[:_SHOWN]
        ],
        caption=True,
    )


def _cell(query: ImageQuery | CaptionQuery) -> Cell:
    if isinstance(query, ImageQuery):
        return Cell(query.label, thumbnail=query.thumbnail)
    return Cell(query.caption)


def _ranks(
    run: Run, way: Direction, queries: Sequence[ImageQuery | CaptionQuery]
) -> dict[str, tuple[int, str]]:
    """Each query's rank as number and text: from the run file, or else from the sample. If none of
    the known answers is a positive, the number is the next rank and the text says so."""
    if known := run.positive_ranks[way]:
        return {key: _rank(rank, known.depth) for key, rank in known.ranks.items()}
    marks = {query.id: [answer.mark for answer in query.retrieved] for query in queries}
    return {
        key: _rank(own.index("own") + 1 if "own" in own else None, len(own))
        for key, own in marks.items()
    }


def _rank(rank: int | None, depth: int) -> tuple[int, str]:
    return (depth + 1, f"> {depth}") if rank is None else (rank, str(rank))
