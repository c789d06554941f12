"""What every data set provides: files under `data/raw/NAME`, and the rows of its caption table."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from manymatch.config.strict import Strict
from manymatch.util.errors import ManyMatchError, SourceError
from manymatch.util.parquet_file import metadata_of, table_writer

Item = TypeVar("Item")
SPLITS = ("train", "validation", "test")
ROWS = 10_000
"""Maximum number of rows in memory."""

CAPTIONS = pa.schema(
    [
        ("image_id", pa.string()),
        ("caption_id", pa.string()),
        ("split", pa.string()),
        ("caption", pa.string()),
        ("file", pa.string()),
        ("labels", pa.list_(pa.int32())),
    ]
)
"""The caption table `data/captions/NAME.parquet`. The captions of an image are consecutive rows.
`file` is relative to `data/raw/NAME`. `labels` are the image's class labels and may be empty."""

CAPTION_PARSER = b"parser"
NEAR_DUPLICATES = b"near_duplicates"
"""The caption table's metadata: the spaCy model of captions in another language than English; of a
data set of one's own, what `own.splits.near_duplicates` returns, as JSON."""

RELEVANCE = pa.schema([("image_id", pa.string()), ("caption_id", pa.string())])
"""`data/captions/NAME.relevance.parquet`: the positives of each split beyond each image's own
captions. Those of the training split are read by `training.negatives: oracle` alone. The schema's
metadata has the key `complete`: "true" if the table lists every positive (scenes); "false" if only
a sample of pairs was judged, so that only queries with an additional positive are scored."""
JUDGED = RELEVANCE.append(pa.field("relevant", pa.bool_()))
"""A relevance table that also has pairs which people judged false (`relevant` is false)."""


def caption_columns(*names: str) -> pa.Schema:
    """Columns of the caption table."""
    return pa.schema([CAPTIONS.field(name) for name in names])


def write_rows(rows: "Iterable[Caption]", path: Path, schema: pa.Schema) -> None:
    """Write a table with the columns of `schema`. At most 10,000 rows are in memory."""
    with table_writer(path, schema) as writer:
        for batch in batches(rows):
            columns = [[getattr(row, name) for row in batch] for name in schema.names]
            writer.write_table(pa.table(columns, schema=schema))


def batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield `items` in lists of at most 10,000."""
    rest = iter(items)
    for first in rest:
        yield list(chain([first], islice(rest, ROWS - 1)))


def parser_of(table: Path) -> str | None:
    """Return the spaCy model that a caption table asks for; None: the one in params.yaml."""
    return metadata_of(table, CAPTION_PARSER, "captions")


@dataclass(frozen=True)
class Caption:
    """One row of the caption table. `where` is the file and line of the caption, for messages."""

    image_id: str
    caption_id: str
    split: str
    caption: str
    file: str
    labels: tuple[int, ...] = ()
    where: str = ""


@dataclass(frozen=True)
class Relevance:
    """Positive (image_id, caption_id) pairs beyond an image's own captions; see `RELEVANCE`.
    `judged_false` are pairs that people judged, and that are not positive."""

    pairs: Iterable[tuple[str, str]]
    complete: bool
    judged_false: Collection[tuple[str, str]] = ()


@dataclass(frozen=True)
class Need:
    """A file or folder that a run needs and this machine lacks: `manymatch check` lists it.

    `size`: bytes, where known. `fault`: what the user must do; None: the run downloads it.
    """

    what: str
    size: int | None = None
    fault: ManyMatchError | None = None

    def __str__(self) -> str:
        if self.size is None:
            return f"{self.what} (size unknown)"
        size = f"{self.size / 10**6:,.0f}" if self.size >= 10**6 else "less than 1"
        return f"{self.what} ({size} MB)"


def missing_file(key: str, path: str | None, what: str) -> Need | None:
    """The need of the file or folder that the setting `key` names; None if it is here.

    Args:
        path: the setting's value.
        what: what belongs there, and where people get it.
    """
    if path is not None and Path(path).exists():
        return None
    state = "not set" if path is None else f"no such file or folder: {path}"
    return Need(key, fault=SourceError(f"{key}: {state}. Set the key to {what}"))


class Dataset(ABC):
    """One data set. `manymatch.datasets.DATASETS` lists all data sets by name."""

    settings_model: ClassVar[type[Strict]]
    """The model of `sources.NAME` in params.yaml."""

    has_images: ClassVar[bool] = True
    """False: the features of clips are published, and there are no image files."""

    def needs(self, name: str, settings: Any) -> Iterable[Need]:
        """Return what `download` needs and this machine lacks, the images first.

        Args:
            name: the entry `sources.NAME` of params.yaml.
            settings: a `settings_model`.
        """
        return ()

    @abstractmethod
    def download(self, settings: Any, raw: Path) -> None:
        """Fill the empty folder `raw` from the sources in `settings`, a `settings_model`.

        Raises:
            SourceError, ConfigError: a source is missing or damaged.
        """

    @abstractmethod
    def captions(self, raw: Path) -> Iterable[Caption]:
        """Yield the rows of the caption table from the files in `raw`.

        Images have a fixed order, and the captions of an image are consecutive.
        """

    def metadata(self, raw: Path) -> dict[bytes, bytes]:
        """Return the metadata of the caption table: `CAPTION_PARSER` and `NEAR_DUPLICATES`."""
        return {}

    def relevance(self, raw: Path) -> Relevance | None:
        """Return additional positives (judged by people, or exact), or None if there are none."""
        return None
