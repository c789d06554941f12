"""Shards that are made part by part at a URL, so that no machine needs the disk for all of them.

A machine makes the features and the shards of a part, copies the shards to URL/FEATURES, and then a
record of them to URL/FEATURES/parts/IDENTITY. IDENTITY is a hash of what the shards depend on, so
parts of other inputs, settings or code are not joined. Whoever finds the records of all parts
writes the index and the seal. Two machines that do so at the same time write the same bytes.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from manymatch.datasets.base import CAPTIONS
from manymatch.features.image_list import read_columns
from manymatch.features.store import FeatureStore
from manymatch.shards.index import INDEX, NAME, Index, open_shards, read_index
from manymatch.shards.tables import Image, distinct
from manymatch.shards.write import PictureFiles, Shards, joined, numbered, store_rows
from manymatch.util.errors import DataError, SourceError, told
from manymatch.util.files import remove, write_json
from manymatch.util.locks import lock_path, locked
from manymatch.util.parquet_file import open_table, table_faults
from manymatch.util.parts import Part, Parts
from manymatch.util.progress import say
from manymatch.util.seal import write_seal


class Place:
    """A writable URL with the shards of `folder`, which ends with DATASET/FEATURES, and the records
    of parts with one identity."""

    def __init__(self, url: str, folder: Path, identity: str) -> None:
        from fsspec.core import url_to_fs

        self.url, self._records = f"{url.rstrip('/')}/{folder.name}", f"parts/{identity[:16]}"
        with self._faults():
            options = {"auto_mkdir": True} if url.startswith("file:") else {}
            self._system, self._path = url_to_fs(self.url, **options)

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # each driver has errors of its own
            raise SourceError(f"{self.url}: {told(error)}. Run the command again") from None

    def put(self, file: Path, name: str) -> None:
        with self._faults():
            self._system.put_file(str(file), f"{self._path}/{name}")

    def record(self, part: Part) -> tuple[Index, dict[str, tuple[int, str]]] | None:
        """The index of the part, and the bytes and the SHA-256 of its shards; None: not made."""
        path = f"{self._path}/{self._name(part)}"
        with self._faults():
            self._system.invalidate_cache()  # other machines write there
            if not self._system.exists(path):
                return None
            content = json.loads(self._system.cat_file(path))
            return Index.model_validate(content["index"]), content["shards"]

    def put_part(self, made: Path, part: Part) -> None:
        """Copy the shards of a part, and the record after them."""
        index, seal = read_index(made), open_shards(made)
        names = [name for split in index.splits.values() for name in split.shards]
        for name in names:
            self.put(seal.check(name), name)
        shards = {name: (seal.sizes[name], seal.hashes[name]) for name in names}
        record = made / "record.json"
        write_json(record, {"index": index.model_dump(), "shards": shards})
        self.put(record, self._name(part))

    def join(self, count: int) -> None:
        """Write the index and the seal if the records of all parts are there."""
        records = []
        for number in range(1, count + 1):
            if (record := self.record(Part(number, count))) is None:
                say(f"{self.url}: part {number}/{count} is not there yet")
                return
            records.append(record)
        indexes = [index for index, _ in records]
        whole, *others = [index.model_copy(update={"splits": {}}) for index in indexes]
        if other := next((index for index in others if index != whole), None):
            raise DataError(
                f"{self.url}: the parts have features of different settings or weights, such as "
                f"{other.attributes} and {whole.attributes}. Remove {self._records} and make the "
                "parts again"
            )
        names = {name for index in indexes for name in index.splits}
        splits = {
            name: joined([one.splits[name] for one in indexes if name in one.splits])
            for name in names
        }
        files = {name: facts for _, shards in records for name, facts in shards.items()}
        with TemporaryDirectory() as folder:
            index = whole.model_copy(update={"splits": splits})
            write_json(Path(folder, INDEX), index.model_dump())
            write_seal(Path(folder), files)
            for name in (INDEX, NAME):
                self.put(Path(folder, name), name)
        say(f"{self.url}: the index of {sum(s.images for s in splits.values()):,} images")

    def _name(self, part: Part) -> str:
        return f"{self._records}/{part.number}-of-{part.count}.json"


def make_part(
    place: Place,
    parts: Parts,
    identity: str,
    captions: Path,
    graphs: Path,
    store: Path,
    raw: Path,
    images_per_shard: int,
    thumbnail: int,
    extract: Callable[[Path, Path], None],
) -> None:
    """Make the wanted part and copy it to `place`; the last part completes the shards there.

    Args:
        parts: the folder for the files of the part, which are removed afterwards.
        captions, graphs, store, raw, images_per_shard, thumbnail: as for `write_shards`. If there
            is no store, the features of the part's images are made.
        extract: makes features: the caption table of the images, the path of the store.

    Raises:
        SourceError: the host does not take the files.
    """
    part = parts.wanted
    assert part is not None
    made = parts.folder / f"{part.number}-of-{part.count}-{identity[:16]}"
    with locked(lock_path(made), made):
        if place.record(part) is not None:
            say(f"{place.url}: part {part.number}/{part.count} is already there")
        else:
            work = made.with_name(f"{made.name}.work")
            if not made.exists():
                ids = _image_ids(captions, images_per_shard, part)
                part.refuse_empty(ids, "shards")
                used = store
                if not store.is_file():
                    used, table = work / store.name, work / captions.name
                    _write_rows(captions, ids, table)
                    extract(table, used)
                with FeatureStore(used) as features:
                    stored = features.image_ids
                    expected = distinct(captions, "image_id") if used == store else ids
                    rows = store_rows(expected, captions, stored, used)
                    pictures = PictureFiles(raw)
                    sizes = images_per_shard, thumbnail
                    Shards(captions, graphs, features, rows, pictures, *sizes).write(made, part)
            place.put_part(made, part)
            remove(work)
            remove(made)
    place.join(part.count)


def _image_ids(captions: Path, images_per_shard: int, part: Part) -> list[str]:
    """The images whose shards are in the part, in table order."""
    rows = itertools.groupby(read_columns(captions, ("image_id", "split")))
    images = (Image(image_id, split, "", (), ()) for (image_id, split), _ in rows)
    return [image.image_id for _, image in numbered(images, images_per_shard, part)]


def _write_rows(captions: Path, ids: Sequence[str], target: Path) -> None:
    """Write the rows of these images to a caption table of their own."""
    table = open_table(captions, CAPTIONS.names, "captions")
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        table_faults(captions, "captions"),
        pq.ParquetWriter(target, table.schema_arrow) as writer,
    ):
        for batch in table.iter_batches():
            column = batch["image_id"]
            writer.write_batch(batch.filter(pc.is_in(column, pa.array(ids, column.type))))
