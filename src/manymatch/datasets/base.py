"""What every dataset provides: files under `data/raw/NAME`, and the rows of its caption table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from manymatch.config.strict import Strict
from manymatch.foreign.parquet_file import open_table

SPLITS = ("train", "validation", "test")

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
"""The caption table's metadata: the spaCy model of captions in another language than English."""

RELEVANCE = pa.schema([("image_id", pa.string()), ("caption_id", pa.string())])
"""`data/captions/NAME.relevance.parquet`: the positives of the validation and test splits beyond
each image's own captions. The schema's metadata has the key `complete`: "true" if the table lists
every positive (scenes); "false" if only a sample of pairs was judged, so that only queries with an
additional positive are scored."""


def caption_columns(*names: str) -> pa.Schema:
    """Columns of the caption table."""
    return pa.schema([CAPTIONS.field(name) for name in names])


def parser_of(table: Path) -> str | None:
    """Return the spaCy model that a caption table asks for; None: the one in params.yaml."""
    metadata = open_table(table, (), "captions").schema_arrow.metadata or {}
    return metadata[CAPTION_PARSER].decode() if CAPTION_PARSER in metadata else None


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
    """Positive (image_id, caption_id) pairs beyond an image's own captions; see `RELEVANCE`."""

    pairs: Iterable[tuple[str, str]]
    complete: bool


class Dataset(ABC):
    """One dataset. `manymatch.datasets.DATASETS` lists all datasets by name."""

    settings_model: ClassVar[type[Strict]]
    """The model of `sources.NAME` in params.yaml."""

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

    def parser(self, raw: Path) -> str | None:
        """Return the spaCy model of the captions' language; None: the one in params.yaml."""
        return None

    def relevance(self, raw: Path) -> Relevance | None:
        """Return additional positives (judged by people, or exact), or None if there are none."""
        return None
