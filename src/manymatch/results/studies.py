"""Studies of a trained model: tables, and a few samples to look at."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

from pydantic import model_validator

from manymatch.results.base import Record, Result
from manymatch.results.retrieval import Graph, OfCaption, OfImage, Thumbnail

Cell = str | int | float | None
_Sample = TypeVar("_Sample")


class StudyTable(Record):
    """Texts and numbers as the report shows them; each row has one cell for each column."""

    title: str
    columns: list[str]
    rows: list[list[Cell]]

    @model_validator(mode="after")
    def _check_cells(self) -> StudyTable:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table '{self.title}': a row has not a cell for each column")
        return self


class Study(Record, Generic[_Sample]):
    """One study of one model. `about` says in a sentence or two what was done."""

    title: str
    about: str
    tables: list[StudyTable]
    samples: list[_Sample]


class RichCaption(OfCaption):
    """A caption with a large scene graph, and the rank of the caption's image."""

    caption: str
    attributes_and_relations: int
    rank: int


class RetrievedEntity(Record):
    """An entity, its score for the image, and whether the entity is true of the image."""

    entity: str
    score: float
    true: bool


class EntityQuery(OfImage):
    """An image, its captions, and the entities that the model ranked first."""

    thumbnail: Thumbnail | None
    captions: list[str]
    entities: list[RetrievedEntity]


class GraphError(OfCaption):
    """A caption's scene graph before and after one error."""

    error: str
    caption: str
    before: Graph
    after: Graph


class StudiesByName(Record):
    """The known studies, and other studies, of which the report shows only the tables."""

    __pydantic_extra__: dict[str, Study[Any]]

    rich_captions: Study[RichCaption] | None = None
    entity_retrieval: Study[EntityQuery] | None = None
    parse_errors: Study[GraphError] | None = None
    reranking: Study[Any] | None = None

    def present(self) -> dict[str, Study[Any]]:
        """The studies that the file holds, by name."""
        known = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: study for name, study in known.items() if study} | self.__pydantic_extra__


class Studies(Result):
    """All studies of one model. Scores of another program have no `seed` and no
    `checkpoint_sha256`."""

    path: ClassVar[str] = "studies/{dataset}/{preset}.json"
    remedy: ClassVar[str] = (
        "Run 'manymatch study {dataset} {preset}' again "
        "('manymatch score' for the scores of another program)."
    )

    dataset: str
    split: str
    preset: str
    method: str
    seed: int | None = None
    checkpoint_sha256: str | None = None
    studies: StudiesByName
