"""What a dataset gives: its files under `data/raw/NAME`, and from them the caption table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

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
"""`data/captions/NAME.parquet`: captions of one image stand together; `file` is relative to
`data/raw/NAME`; `labels` (class labels of the image) may be empty."""

RELEVANCE = pa.schema([("image_id", pa.string()), ("caption_id", pa.string())])
"""`data/captions/NAME.relevance.parquet`: true pairs of the validation and test splits beyond the
image's own captions. Schema metadata `complete`: "true" if every true pair is listed (scenes),
"false" if pairs were judged by sampling, so that only queries with an extra pair are scored."""


@dataclass(frozen=True)
class Caption:
    """One row of the caption table. `where` (file:line) it was read from, for error messages."""

    image_id: str
    caption_id: str
    split: str
    caption: str
    file: str
    labels: tuple[int, ...] = ()
    where: str = ""


@dataclass(frozen=True)
class Relevance:
    """True (image_id, caption_id) pairs beyond the own ones; see `RELEVANCE`."""

    pairs: Iterable[tuple[str, str]]
    complete: bool


class Dataset(Protocol):
    """One dataset. Registered by name in `manymatch.datasets`."""

    def download(self, settings: Any, raw: Path) -> None:
        """Fill the empty folder `raw` from the sources that `settings` name."""

    def captions(self, raw: Path) -> Iterable[Caption]:
        """The rows of the caption table, images in a fixed order, captions of an image together."""

    def relevance(self, raw: Path) -> Relevance | None:
        """Judged or exact extra pairs, or None where the dataset has none."""
