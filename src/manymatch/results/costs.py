"""What trained models cost: to train, to test, and to answer a query."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from manymatch.results.base import Count, Record, Result

Positive = Annotated[float, Field(gt=0)]


class QueryCost(Record):
    """Milliseconds of the parts of a text query. `parse` is None if the method reads no scene
    graph; `search` is by the number of images in the gallery."""

    parse: Positive | None
    encode: Positive
    search: Annotated[dict[Count, Positive], Field(min_length=1)]

    def total(self, images: int) -> float:
        """Milliseconds of a query in a gallery of `images`."""
        return (self.parse or 0.0) + self.encode + self.search[images]


class StepCost(Record):
    """The median seconds of a training step, and the size of the batch. The memory is that of a
    GPU."""

    seconds: Positive
    images: Count
    captions: Count
    peak_gpu_memory_mb: Positive | None


class TestCost(Record):
    """Seconds to embed a split from its shards and to rank the split in both directions, with ten
    items kept of each query.

    `scaled_from` is the number of images whose ranking was measured; `ranking` is that time scaled
    to all pairs of the split. None: the ranking of the whole split was measured.
    """

    __test__ = False  # pytest would collect a class with this name

    embedding: Positive
    ranking: Positive
    scaled_from: Count | None


class Cost(Record):
    """The costs of one trained model, or of SCAN's cross-attention, which has no setting because
    the module is not trained. `elements` vectors of length `size` are compared; `multiply_adds` are
    those of one similarity."""

    name: str
    method: str
    setting: Literal["small-scale", "reproduced"] | None
    checkpoint_sha256: str | None = None
    """The hash of the model; older files lack it."""
    elements: Count
    size: Count
    parameters: Count
    multiply_adds: Count
    step: StepCost
    test: TestCost
    query: QueryCost


class Costs(Result):
    """The costs of all measured models on one data set and one machine."""

    path: ClassVar[str] = "efficiency/{dataset}.json"
    remedy: ClassVar[str] = "Run 'manymatch efficiency {dataset}' again."

    dataset: str
    split: str
    images: Count
    captions: Count
    hardware: str
    version: str | None = None
    git_revision: str | None = None
    rows: Annotated[list[Cost], Field(min_length=1)]
