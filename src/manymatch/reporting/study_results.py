"""What studies found of trained models, read back and checked: `reports/studies/D/P.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import model_validator

from manymatch.reporting.records import OfDataset, Record
from manymatch.reporting.results import Graph, Thumbnail, read_placed

Cell = str | float | None
_Sample = TypeVar("_Sample")


class StudyTable(Record):
    """Texts and numbers as they are to be shown, a cell a column."""

    title: str
    columns: list[str]
    rows: list[list[Cell]]

    @model_validator(mode="after")
    def _a_cell_a_column(self) -> StudyTable:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table '{self.title}': a row has not a cell for each column")
        return self


class Study(Record, Generic[_Sample]):
    """One study of one model; `samples` are a few cases to look at."""

    title: str
    about: str
    tables: list[StudyTable]
    samples: list[_Sample]


class RichCaption(Record):
    """A caption that says much, and the rank of its image."""

    caption_id: str
    caption: str
    attributes_and_relations: int
    rank: int


class FoundEntity(Record):
    """An entity, its score for the image, and whether it is true of it."""

    entity: str
    score: float
    true: bool


class EntityQuery(Record):
    """An image, its captions, and the entities that a model ranked first."""

    image_id: str
    thumbnail: Thumbnail | None
    captions: list[str]
    entities: list[FoundEntity]


class GraphError(Record):
    """A caption's scene graph before and after one error."""

    error: str
    caption_id: str
    caption: str
    before: Graph
    after: Graph


class StudiesByName(Record):
    """The known studies, and any other one, of which only the tables are shown."""

    __pydantic_extra__: dict[str, Study[Any]]

    rich_captions: Study[RichCaption] | None = None
    entity_retrieval: Study[EntityQuery] | None = None
    parse_errors: Study[GraphError] | None = None
    reranking: Study[Any] | None = None

    def found(self) -> dict[str, Study[Any]]:
        """Those that are there."""
        known = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: study for name, study in known.items() if study} | self.__pydantic_extra__


class Studied(OfDataset):
    """All studies of one model."""

    split: str
    preset: str
    method: str
    studies: StudiesByName


def read_studies(reports: Path) -> list[Studied]:
    """Every file of studies, by data set and preset; a fault is a one-line `DataError`."""
    return [_read(path) for path in sorted((reports / "studies").glob("*/*.json"))]


def _read(path: Path) -> Studied:
    place = f"{path.parent.name} {path.stem}"
    again = f"run 'manymatch study {place}' again ('manymatch score' for another model's scores)"
    return read_placed(path, Studied, again)
