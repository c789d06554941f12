"""Queries with their answers, as blocks of the page: a picker, and for each query what was asked
and what each method retrieved."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from manymatch.reporting.graph_drawing import Drawing
from manymatch.reporting.table import Block
from manymatch.results.retrieval import Mark, RetrievedCaption, RetrievedImage


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
