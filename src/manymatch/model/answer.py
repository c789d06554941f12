"""What a search and an explanation give: items with scores, times, and why a score is as it is.

This module does not import torch, so that the service starts at once.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from manymatch.results.base import Record
from manymatch.results.retrieval import Graph

Side = Literal["images", "texts"]
"""The kind of the items of an index, or of queries."""

Table = list[list[float]]
_FEWEST = 100
"""The fewest images of a validation split whose shares of right results are told. With 100 images a
share of 20% is known to 8% (95% interval)."""


class Result(Record):
    """An item that a search found.

    Attributes:
        id: the item's name in the index, for `Index.item` and `Index.picture`.
        path: the item's place in the source, such as a file below the folder.
        score: the score by which retrieval ranks; a higher score is better.
        precision: the share in 0..1 of right results at this score, as the model's validation split
            knows it; None if the model does not know it, and for a picture that finds pictures.
        text: the caption, if the index is one of captions.
    """

    id: str
    path: str
    score: float
    precision: float | None = None
    text: str | None = None


class Right(Record):
    """Which results count as right in `Result.precision`.

    Attributes:
        pairs: "all" true pairs of the data set, "judged" ones besides an image's own captions, or
            only an image's "own" captions: other results may fit the query as well.
        images: the number of images of the validation split, on which the shares rest.
    """

    pairs: Literal["all", "judged", "own"]
    images: int

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "Right | None":
        """What the facts of a model say; None: the model knows no shares, or its validation split
        has too few images to know them."""
        known = facts.get("precision_of")
        if facts.get("precision") is None or known is None or known["images"] < _FEWEST:
            return None
        return cls(pairs=known["right"], images=known["images"])

    def __str__(self) -> str:
        meaning = {
            "all": "right: the share of results with this score that are true",
            "judged": "right: the share of results with this score that are an own or judged pair",
            "own": "own pair: the share of results with this score that are a picture and its own "
            "caption; others may fit as well",
        }[self.pairs]
        return f"{meaning}, of {self.images:,} validation images"


class Milliseconds(Record):
    """How long one search took. The queries of one call share these times."""

    parse: float
    encode: float
    search: float


class Answer(Record):
    """The results for one query, the best first; equal scores stand in the order of the index.

    Attributes:
        query: the text, the picture's file or the id of the item that asked.
        unknown: the words of a text that the model does not know, which count as one same word.
        understood: whether the model knows any word of a text. If not, there are no results.
        right: what the shares of the results count; None: the results have no shares.
        exact: whether no other item can be among the results.
        reranked: the number of items whose score was computed exactly.
    """

    query: str
    unknown: list[str] = Field(default_factory=list)
    understood: bool = True
    results: list[Result]
    right: Right | None = None
    exact: bool
    reranked: int
    ms: Milliseconds

    def columns(self) -> dict[str, list[Any]]:
        """The query, the rank and the parts of each result, without parts that no result has."""
        columns: dict[str, list[Any]] = {"query": [self.query] * len(self.results)}
        columns["rank"] = [*range(1, len(self.results) + 1)]
        for name in Result.model_fields:
            values = [getattr(result, name) for result in self.results]
            if any(value is not None for value in values):
                columns[name] = values
        return columns

    def notes(self) -> list[str]:
        """What a reader must know before the results."""
        if not self.understood:
            return ["The model knows no word of this query, so nothing is found."]
        return [f"Not known to the model: {', '.join(self.unknown)}"] if self.unknown else []


class Item(Record, ser_json_bytes="base64"):
    """An item of an index.

    Attributes:
        row: the item's row in the index.
        size: bytes of the file; 0 if the item is not a file.
        mtime_ns: when the file was changed, in nanoseconds since 1970; 0 if the item is not a file.
        sha256: the hash of what was embedded.
        facts: the further columns of the index, such as the text of a caption. In JSON bytes are
            base64.
    """

    row: int
    id: str
    path: str
    size: int
    mtime_ns: int
    sha256: str
    facts: dict[str, Any]


class Explanation(Record):
    """What a method knows about one picture and one text; None: the method has no such part.

    Attributes:
        score: the score by which retrieval ranks.
        cosines: `(K, L)`, of the picture's elements (rows) and the text's elements.
        matched: pairs (row, column) of the one-to-one assignment with the largest sum of cosines.
        image_attention: `(K, R)`, how much each element looks at each region.
        boxes: `(R, 4)`, x1 y1 x2 y2 of the regions in 0..1.
        words: the W words or wordpieces that the method reads.
        text_attention: `(L, W)`, how much each element reads each word.
        image_variance, text_variance: the mean variance of the two Gaussians.
        graph: the scene graph of the text.
        entity_scores: the score of the picture and each object of the graph with its attributes;
            the lowest one limits the score after re-ranking (CORA, eq. 14).
    """

    score: float
    cosines: Table
    matched: list[tuple[int, int]]
    image_attention: Table | None = None
    boxes: Table | None = None
    words: list[str]
    text_attention: Table | None = None
    image_variance: float | None = None
    text_variance: float | None = None
    graph: Graph | None = None
    entity_scores: list[float] | None = None
