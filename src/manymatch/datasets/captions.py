"""The stage `captions`: one checked table of a dataset's captions, its training words, its
judged pairs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from manymatch.datasets import dataset
from manymatch.datasets.base import CAPTIONS, RELEVANCE, SPLITS, Caption, Relevance
from manymatch.datasets.image_folder import picture_path, read_place
from manymatch.system.errors import DataError
from manymatch.system.files import replacing
from manymatch.system.progress import say, track
from manymatch.text.caption_text import caption_fault, shown
from manymatch.text.vocabulary import Vocabulary

Item = TypeVar("Item")
_ROWS = 10_000
"""Rows held in memory at once."""


def write_captions(
    name: str, raw: Path, table: Path, vocabulary: Path, relevance: Path, minimum_count: int
) -> None:
    """Write the caption table, vocabulary and judged pairs of dataset `name` from its files `raw`.

    The vocabulary keeps the words seen at least `minimum_count` times in training captions. The
    first fault in the data is a `DataError`; then no file is replaced. Memory grows with the ids.
    """
    source = dataset(name)
    if not raw.is_dir():
        raise DataError(f"{raw}: no such folder; run 'manymatch download {name}' first")
    ledger = Ledger(raw)
    with contextlib.ExitStack() as stack:
        new_table, new_words, new_relevance = (
            stack.enter_context(replacing(path)) for path in (table, vocabulary, relevance)
        )
        _write_table(map(ledger.enter, source.captions(raw)), new_table, name)
        ledger.close(name)
        words = Vocabulary.from_captions(training_captions(new_table), minimum_count)
        words.save(new_words)
        _write_relevance(source.relevance(raw), ledger, new_relevance, name)
    say(f"{name}: {ledger.summary()}, {len(words)} words")


def training_captions(table: Path) -> Iterator[str]:
    """The captions of the training split of a caption table, a piece at a time."""
    with pq.ParquetFile(table) as file:
        for piece in file.iter_batches(_ROWS, columns=["split", "caption"]):
            in_training = pc.equal(piece["split"], "train")
            yield from piece.filter(in_training)["caption"].to_pylist()


class Ledger:
    """Checks rows one after the other and remembers which images and captions there are."""

    def __init__(self, raw: Path) -> None:
        self._raw, self._place = raw, read_place(raw)
        self._images: dict[str, str] = {}
        self._captions: dict[str, str] = {}
        self._last: Caption | None = None

    def enter(self, row: Caption) -> Caption:
        """`row`, if it is sound by itself and agrees with those before it."""
        fault = _row_fault(row) or self._fault_beside_others(row)
        if fault:
            raise DataError(f"{_where(row)}: {fault}")
        self._images[row.image_id] = row.split
        self._captions[row.caption_id] = row.image_id
        self._last = row
        return row

    def close(self, name: str) -> None:
        """The checks that need all rows."""
        if "train" not in self._images.values():
            raise DataError(f"{name}: no captions of a training image; check the dataset's splits")

    def pair_fault(self, image_id: str, caption_id: str) -> str | None:
        """Why these two cannot be a judged pair beyond an image's own captions."""
        owner = self._captions.get(caption_id)
        if image_id not in self._images:
            return f"no image '{image_id}' in the caption table"
        if owner is None:
            return f"no caption '{caption_id}' in the caption table"
        if owner == image_id:
            return f"'{caption_id}' is a caption of image '{image_id}' itself"
        split = self._images[image_id]
        if split == "train" or split != self._images[owner]:
            return f"'{image_id}' and '{caption_id}' are not of one evaluated split"
        return None

    def summary(self) -> str:
        splits = list(self._images.values())
        images = "/".join(str(splits.count(split)) for split in SPLITS)
        return f"{images} images ({'/'.join(SPLITS)}), {len(self._captions)} captions"

    def _fault_beside_others(self, row: Caption) -> str | None:
        last = self._last
        if row.caption_id in self._captions:
            return f"a second caption '{row.caption_id}'; ids must differ"
        if last is None or row.image_id != last.image_id:
            return self._fault_of_new_image(row)
        if row.split != last.split:
            return f"image '{row.image_id}' is in split {row.split} and in split {last.split}"
        if row.file != last.file:
            return f"image '{row.image_id}' has two files, {last.file} and {row.file}"
        return None

    def _fault_of_new_image(self, row: Caption) -> str | None:
        known = self._images.get(row.image_id)
        if known is not None and known != row.split:
            return f"image '{row.image_id}' is in split {row.split} and in split {known}"
        if known is not None:
            return f"captions of image '{row.image_id}' do not stand together"
        return None if self._place.absent else self._fault_of_picture(row)

    def _fault_of_picture(self, row: Caption) -> str | None:
        try:
            path = picture_path(self._raw, row.file, self._place)
        except DataError as error:
            return str(error)
        if not path.is_file():
            where = f" (looked for {path})" if self._place.folder else ""
            return f"caption '{row.caption_id}' has no image: {row.file} is not there{where}"
        return None


def _row_fault(row: Caption) -> str | None:
    return (
        _id_fault("image_id", row.image_id)
        or _id_fault("caption_id", row.caption_id)
        or _split_fault(row.split)
        or _file_fault(row.file)
        or caption_fault(row.caption)
    )


def _id_fault(what: str, value: str) -> str | None:
    """Ids stand in whitespace-separated run files and in messages."""
    if not value or not value.isprintable() or len(value.split()) != 1 or len(value) > 255:
        return f"{what} {shown(value)} is not a word of 1 to 255 printable characters"
    return None


def _split_fault(split: str) -> str | None:
    return None if split in SPLITS else f"unknown split '{split}' (known: {', '.join(SPLITS)})"


def _file_fault(file: str) -> str | None:
    path = PurePosixPath(file)
    if not path.parts or path.is_absolute() or ".." in path.parts or not file.isprintable():
        return f"file name {shown(file)} leaves the dataset's folder or cannot be printed"
    return None


def _where(row: Caption) -> str:
    return row.where or f"caption {shown(row.caption_id)}"


def _write_table(rows: Iterable[Caption], path: Path, name: str) -> None:
    with pq.ParquetWriter(path, CAPTIONS) as writer:
        for piece in _pieces(track(rows, f"{name} captions")):
            columns = [[getattr(row, field) for row in piece] for field in CAPTIONS.names]
            writer.write_table(pa.table(columns, schema=CAPTIONS))


def _write_relevance(extra: Relevance | None, ledger: Ledger, path: Path, name: str) -> None:
    complete = extra is not None and extra.complete
    schema = RELEVANCE.with_metadata({"complete": "true" if complete else "false"})
    pairs = extra.pairs if extra is not None else ()
    with pq.ParquetWriter(path, schema) as writer:
        for piece in _pieces(_checked_pairs(pairs, ledger, name)):
            writer.write_table(pa.table(list(zip(*piece, strict=True)), schema=schema))


def _checked_pairs(
    pairs: Iterable[tuple[str, str]], ledger: Ledger, name: str
) -> Iterator[tuple[str, str]]:
    for image_id, caption_id in pairs:
        fault = ledger.pair_fault(image_id, caption_id)
        if fault:
            raise DataError(f"{name}: judged pairs: {fault}")
        yield image_id, caption_id


def _pieces(items: Iterable[Item]) -> Iterator[list[Item]]:
    """`items` in lists of at most `_ROWS`."""
    rest = iter(items)
    for first in rest:
        yield list(chain([first], islice(rest, _ROWS - 1)))
