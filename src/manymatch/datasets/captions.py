"""The stage `captions`: write a data set's checked caption table, vocabulary and judged pairs."""

import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from manymatch.batch.caption_text import caption_fault, shown
from manymatch.batch.vocabulary import Vocabulary
from manymatch.datasets import base, dataset
from manymatch.datasets.image_files import image_path, read_image_folder
from manymatch.util.errors import DataError
from manymatch.util.parquet_file import table_writer
from manymatch.util.progress import say, track
from manymatch.util.seal import sealed


def write_captions(
    name: str,
    raw: Path,
    table: Path,
    vocabulary: Path,
    relevance: Path,
    minimum_count: int,
    kind: str | None = None,
) -> None:
    """Write the caption table, vocabulary and judged pairs of data set `name`, with files in `raw`.

    `kind`: which of `datasets.DATASETS` reads the files, if not the one of this name.
    The vocabulary keeps words that occur at least `minimum_count` times in training captions.
    Memory grows with the number of ids.

    Raises:
        DataError: the first fault in the data. In this case no file is replaced.
    """
    source = dataset(kind or name)
    if not raw.is_dir():
        raise DataError(f"{raw}: no such folder. Run 'manymatch download {name}' first")
    ledger = Ledger(raw)
    with contextlib.ExitStack() as stack:
        new_table, new_words, new_relevance = (
            stack.enter_context(sealed(path)) for path in (table, vocabulary, relevance)
        )
        schema = base.CAPTIONS.with_metadata(source.metadata(raw) or None)
        rows = track(map(ledger.enter, source.captions(raw)), f"{name} captions")
        base.write_rows(rows, new_table, schema)
        ledger.close(name)
        words = Vocabulary.from_captions(training_captions(new_table), minimum_count)
        words.save(new_words)
        _write_relevance(source.relevance(raw), ledger, new_relevance, name)
    say(f"{name}: {ledger.summary()}, {len(words)} words")


def training_captions(table: Path) -> Iterator[str]:
    """Yield the training captions of a caption table. Few of them are in memory at a time."""
    with pq.ParquetFile(table) as file:
        for batch in file.iter_batches(base.ROWS, columns=["split", "caption"]):
            is_training = pc.equal(batch["split"], "train")
            yield from batch.filter(is_training)["caption"].to_pylist()


class Ledger:
    """Checks rows in order, and keeps the ids of the images and captions seen so far."""

    def __init__(self, raw: Path) -> None:
        self._raw, self._folder = raw, read_image_folder(raw)
        self._images: dict[str, str] = {}
        self._captions: dict[str, str] = {}
        self._last: base.Caption | None = None

    def enter(self, row: base.Caption) -> base.Caption:
        """Return `row` if it is valid and consistent with all earlier rows.

        Raises:
            DataError: it is not; the message names the position of the row.
        """
        fault = _row_fault(row) or self._inconsistency(row)
        if fault:
            raise DataError(f"{row.where or f'caption {shown(row.caption_id)}'}: {fault}")
        self._images[row.image_id] = row.split
        self._captions[row.caption_id] = row.image_id
        self._last = row
        return row

    def close(self, name: str) -> None:
        """Run the checks that need all rows."""
        images = set(self._images.values())
        for split, purpose in (("train", "training"), ("validation", "validation")):
            if split not in images:
                raise DataError(
                    f"{name}: no captions of {purpose} images. Check the data set's splits"
                )

    def pair_fault(self, image_id: str, caption_id: str) -> str | None:
        """Return why these ids cannot be a judged pair beyond an image's own captions, or None."""
        own_image, split = self._captions.get(caption_id), self._images.get(image_id)
        if split is None:
            return f"no image '{image_id}' in the caption table"
        if own_image is None:
            return f"no caption '{caption_id}' in the caption table"
        if own_image == image_id:
            return f"'{caption_id}' is an own caption of image '{image_id}'"
        if split != self._images[own_image]:
            return f"'{image_id}' and '{caption_id}' are not in the same split"
        return None

    def summary(self) -> str:
        """Return the numbers of images and captions, in words."""
        splits = list(self._images.values())
        images = "/".join(str(splits.count(split)) for split in base.SPLITS)
        return f"{images} images ({'/'.join(base.SPLITS)}), {len(self._captions)} captions"

    def _inconsistency(self, row: base.Caption) -> str | None:
        last, known = self._last, self._images.get(row.image_id, row.split)
        if row.caption_id in self._captions:
            return f"a second caption '{row.caption_id}'. Ids must be unique"
        if row.split != known:
            return f"image '{row.image_id}' is in split {row.split} and in split {known}"
        if last is not None and row.image_id == last.image_id:
            if row.file != last.file:
                return f"image '{row.image_id}' has two files, {last.file} and {row.file}"
            return None
        if row.image_id in self._images:
            return f"captions of image '{row.image_id}' are not consecutive rows"
        if self._folder.absent:
            return None
        try:
            path = image_path(self._raw, row.file, self._folder)
        except DataError as error:
            return str(error)
        if not path.is_file():
            where = f" (expected at {path})" if self._folder.folder else ""
            return f"caption '{row.caption_id}' has no image: {row.file} does not exist{where}"
        return None


def _row_fault(row: base.Caption) -> str | None:
    for what, value in (("image_id", row.image_id), ("caption_id", row.caption_id)):
        # Run files separate ids by whitespace, and messages print them.
        if len(value.split()) != 1 or not value.isprintable() or len(value) > 255:
            return f"{what} {shown(value)} is not one word of 1 to 255 printable characters"
    if row.split not in base.SPLITS:
        return f"unknown split '{row.split}' (known: {', '.join(base.SPLITS)})"
    file, path = row.file, PurePosixPath(row.file)
    if not path.parts or path.is_absolute() or ".." in path.parts or not file.isprintable():
        return f"file name {shown(file)} leaves the data set's folder or has unprintable characters"
    return caption_fault(row.caption)


def _write_relevance(extra: base.Relevance | None, ledger: Ledger, path: Path, name: str) -> None:
    extra = extra or base.Relevance((), complete=False)
    columns = base.JUDGED if extra.judged_false else base.RELEVANCE
    schema = columns.with_metadata({"complete": "true" if extra.complete else "false"})
    with table_writer(path, schema) as writer:
        for pairs, relevant in ((extra.pairs, True), (extra.judged_false, False)):
            for batch in base.batches(pairs):
                if fault := next(filter(None, (ledger.pair_fault(*pair) for pair in batch)), None):
                    raise DataError(f"{name}: judged pairs: {fault}")
                values = [*zip(*batch, strict=True), [relevant] * len(batch)]
                writer.write_table(pa.table(values[: len(schema)], schema=schema))
