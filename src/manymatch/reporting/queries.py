"""Sample queries with the answers of every method side by side, ready for the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from manymatch.reporting.graph_drawing import Drawing, draw
from manymatch.results.retrieval import RetrievedCaption, RetrievedImage
from manymatch.results.runs import Run
from manymatch.results.samples import CaptionQuery, ImageQuery, Samples

MOST_QUERIES, MOST_ANSWERS = 16, 10
"""Queries a direction and answers a method that the page shows: bounds its size."""

_Query = TypeVar("_Query", ImageQuery, CaptionQuery)
_Answer = TypeVar("_Answer", RetrievedCaption, RetrievedImage)


@dataclass
class Thumbnails:
    """Pictures of the page, each embedded once however often it is shown."""

    numbers: dict[str, int] = field(default_factory=dict)
    """Number of each base64 JPEG."""

    def number(self, thumbnail: str | None) -> int | None:
        """The number of a picture; None if there is none."""
        if thumbnail is None:
            return None
        return self.numbers.setdefault(thumbnail, len(self.numbers))


@dataclass(frozen=True)
class Shown(Generic[_Answer]):
    """One answer: `rank` from 1, `picture` the number of its thumbnail."""

    rank: int
    answer: _Answer
    picture: int | None = None


@dataclass(frozen=True)
class Ranking(Generic[_Answer]):
    """The first answers of one run; None if the run did not sample this query."""

    run: Run
    answers: list[Shown[_Answer]] | None

    @property
    def right(self) -> int:
        return self._count("own")

    @property
    def plausible(self) -> int:
        return self._count("true")

    def _count(self, mark: str) -> int:
        return sum(shown.answer.mark == mark for shown in self.answers or [])


@dataclass(frozen=True)
class ImagePanel:
    """An image and the captions found for it."""

    query: ImageQuery
    picture: int | None
    rankings: list[Ranking[RetrievedCaption]]


@dataclass(frozen=True)
class CaptionPanel:
    """A caption, its scene graph, and the images found for it."""

    query: CaptionQuery
    drawing: Drawing | None
    rankings: list[Ranking[RetrievedImage]]


def image_panels(runs: Sequence[Run], thumbnails: Thumbnails) -> list[ImagePanel]:
    """The sampled image queries of one data set's runs."""
    return [
        ImagePanel(
            query=query,
            picture=thumbnails.number(query.thumbnail),
            rankings=[_ranking(run, found, lambda _: None) for run, found in answers],
        )
        for query, answers in _sampled(runs, lambda samples: samples.images, "image_id")
    ]


def caption_panels(runs: Sequence[Run], thumbnails: Thumbnails) -> list[CaptionPanel]:
    """The sampled caption queries of one data set's runs."""

    def picture(answer: RetrievedImage) -> int | None:
        return thumbnails.number(answer.thumbnail)

    return [
        CaptionPanel(
            query=query,
            drawing=draw(query.graph) if query.graph and query.graph.objects else None,
            rankings=[_ranking(run, found, picture) for run, found in answers],
        )
        for query, answers in _sampled(runs, lambda samples: samples.captions, "caption_id")
    ]


def _sampled(
    runs: Iterable[Run], queries: Callable[[Samples], list[_Query]], key: str
) -> list[tuple[_Query, list[tuple[Run, _Query | None]]]]:
    """Each query with what every run found for it, in the order the runs first name them."""
    by_run = [
        (run, {getattr(query, key): query for query in queries(run.samples)})
        for run in runs
        if run.samples
    ]
    kept: dict[str, _Query] = {}
    for _, found in by_run:
        kept |= {name: query for name, query in found.items() if name not in kept}
    return [
        (query, [(run, found.get(name)) for run, found in by_run])
        for name, query in list(kept.items())[:MOST_QUERIES]
    ]


def _ranking(
    run: Run,
    query: ImageQuery | CaptionQuery | None,
    picture: Callable[..., int | None],
) -> Ranking:
    if query is None:
        return Ranking(run, None)
    answers = query.retrieved[:MOST_ANSWERS]
    return Ranking(
        run, [Shown(rank, answer, picture(answer)) for rank, answer in enumerate(answers, start=1)]
    )
