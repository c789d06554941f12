"""Queries with their answers, as blocks of the page: a picker, and for each query what was asked
and what each method retrieved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from manymatch.reporting.blocks import Block
from manymatch.reporting.graph_drawing import Drawing
from manymatch.results.retrieval import Mark, RetrievedCaption, RetrievedImage
from manymatch.results.runs import Run
from manymatch.results.samples import CaptionQuery, ImageQuery, Samples

MAX_QUERIES, MAX_ANSWERS = 16, 10
"""The most queries of a direction and answers of a method that a page shows."""


_Query = TypeVar("_Query", ImageQuery, CaptionQuery)


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
    """The first answers of one method; `small` sums them up."""

    title: str
    small: str
    answers: Sequence[Answer]

    @property
    def pictures(self) -> bool:
        return bool(self.answers) and self.answers[0].text is None


class Rankings(Block):
    """The rankings of several methods side by side."""

    label: str
    rankings: Sequence[Ranking]


class Legend(Block):
    """What the marks of answers mean. `judged`: the data set has positives beyond the pairs."""

    judged: bool


def answer_of(
    item: RetrievedCaption | RetrievedImage, rank: int | None = None, notes: Sequence[str] = ()
) -> Answer:
    """A retrieved caption or image as an answer."""
    if item.zeta is not None:
        labels = "1 label differs" if item.zeta == 1 else f"{item.zeta} labels differ"
        notes = (*notes, labels)
    if isinstance(item, RetrievedCaption):
        return Answer(item.mark, item.score, item.caption, None, item.id, rank, (*notes,))
    return Answer(item.mark, item.score, None, item.thumbnail, item.id, rank, (*notes,))


def sampled_rankings(
    runs: Iterable[Run], queries: Callable[[Samples], Sequence[_Query]]
) -> list[tuple[_Query, list[Ranking]]]:
    """The first sampled queries of all runs, each with the ranking of every run."""
    rows = [
        (run.preset, {query.id: query for query in queries(run.samples)})
        for run in runs
        if run.samples
    ]
    first: dict[str, _Query] = {}
    for _, sampled in rows:
        first |= {name: query for name, query in sampled.items() if name not in first}
    return [
        (query, [_ranking(preset, sampled.get(name)) for preset, sampled in rows])
        for name, query in list(first.items())[:MAX_QUERIES]
    ]


def _ranking(title: str, query: ImageQuery | CaptionQuery | None) -> Ranking:
    """The first answers of a method; None: the method did not sample this query."""
    if query is None:
        return Ranking(title, "not sampled by this run", [])
    items: Sequence[RetrievedCaption | RetrievedImage] = query.retrieved[:MAX_ANSWERS]
    answers = [answer_of(item, rank) for rank, item in enumerate(items, start=1)]
    right, plausible = (sum(answer.mark == mark for answer in answers) for mark in ("own", "true"))
    counts = f"{right} right" + (f", {plausible} plausible" if plausible else "")
    return Ranking(title, f"{counts} of {len(answers)}", answers)
