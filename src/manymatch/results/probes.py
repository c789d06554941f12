"""Probes of a trained model: tables, and a few samples to look at; the classes of a trained SwAMP:
keywords, captions and pictures of each class."""

from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import Field, model_validator

from manymatch.results.base import Record, Result
from manymatch.results.retrieval import Counts, Graph, OfCaption, OfImage, Thumbnail

Cell = str | int | float | None
_Sample = TypeVar("_Sample")


class ProbeTable(Record):
    """Texts and numbers as the report shows them; each row has one cell for each column."""

    title: str
    columns: list[str]
    rows: list[list[Cell]]

    @model_validator(mode="after")
    def _check_cells(self) -> "ProbeTable":
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table '{self.title}': a row has not a cell for each column")
        return self


class Probe(Record, Generic[_Sample]):
    """One probe of one model. `about` says in a sentence or two what was done."""

    title: str
    about: str
    tables: list[ProbeTable]
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


class ProbesByName(Record):
    """The known probes, and other probes, of which the report shows only the tables."""

    __pydantic_extra__: dict[str, Probe[Any]]

    rich_captions: Probe[RichCaption] | None = None
    entity_retrieval: Probe[EntityQuery] | None = None
    parse_errors: Probe[GraphError] | None = None
    reranking: Probe[Any] | None = None

    def present(self) -> dict[str, Probe[Any]]:
        """The probes that the file holds, by name."""
        known = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: probe for name, probe in known.items() if probe} | self.__pydantic_extra__


class Probes(Result):
    """All probes of one model. Scores of another program have no `seed` and no
    `checkpoint_sha256`."""

    path: ClassVar[str] = "probes/{dataset}/{preset}.json"
    remedy: ClassVar[str] = (
        "Run 'manymatch probe {dataset} {preset}' again "
        "('manymatch score' for the scores of another program)."
    )

    dataset: str
    split: str
    preset: str
    method: str
    seed: int | None = None
    checkpoint_sha256: str | None = None
    probes: Annotated[ProbesByName, Field(alias="studies")]


Keyword = tuple[str, int]
"""A word, and the number of captions that have the word."""


class ClusterCaption(OfCaption):
    caption: str


class Cluster(Record):
    """One class: its keywords and members. `images` are image ids; only the first images of the
    first classes have `thumbnails`."""

    number: int
    nouns: list[Keyword]
    verbs: list[Keyword]
    captions: list[ClusterCaption]
    images: list[str]
    thumbnails: dict[str, Thumbnail | None]


class Clusters(Result):
    """The classes that hold a caption or an image, those with most captions first. `agreement` is
    the percentage of captions that are in the class of their image."""

    path: ClassVar[str] = "clusters/{dataset}/{preset}.json"
    remedy: ClassVar[str] = "Run 'manymatch clusters {dataset} {preset}' again."

    dataset: str
    split: str
    preset: str
    method: str | None = None
    seed: int | None = None
    checkpoint_sha256: str | None = None
    n_classes: int
    used: Counts
    """The number of classes that hold captions, and that hold images."""
    agreement: Annotated[float, Field(ge=0.0, le=100.0)]
    classes: list[Cluster]
