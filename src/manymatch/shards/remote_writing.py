"""Shards are copied to a URL, where a seal never stands above shards that are not its own.

Shards that are made part by part at the URL need no machine with the disk for all of them. A
machine makes the features and the shards of a part, copies the shards to URL/FEATURES, and then a
record of them to URL/FEATURES/parts/IDENTITY. IDENTITY is a hash of what the shards depend on, so
parts of other inputs, settings or code are not joined: the first of them removes the seal and the
records that are there, because its shards replace theirs. Whoever finds the records of all parts
writes the index and the seal. Two machines that do so at the same time write the same bytes.
"""

import contextlib
import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field, model_validator

from manymatch.config.strict import Strict
from manymatch.datasets.base import CAPTIONS
from manymatch.features.image_list import read_columns
from manymatch.features.store import FeatureStore
from manymatch.shards.index import INDEX, NAME, Count, Index, ShardName, open_shards, read_index
from manymatch.shards.remote import file_system
from manymatch.shards.tables import Image, distinct
from manymatch.shards.write import Inputs, Shards, joined_index, numbered, store_rows
from manymatch.util.errors import ConfigError, DataError, SourceError, told
from manymatch.util.files import remove, replacing, write_json
from manymatch.util.locks import lock_path, locked
from manymatch.util.parquet_file import open_table, table_faults
from manymatch.util.parts import Part, Parts
from manymatch.util.progress import say, track
from manymatch.util.seal import write_seal


def upload(folder: Path, url: str) -> None:
    """Copy the shards in `folder` to a folder with its name at `url`. An earlier seal there is
    removed first, and the new seal comes last, because readers need the seal first. A host that
    does not take the files is a `SourceError`."""
    index = read_index(folder)
    names = [name for split in index.splits.values() for name in split.shards]
    place = f"{url.rstrip('/')}/{folder.name}"
    unseal(place)
    for name in track([*names, INDEX, NAME], f"upload to {url}"):
        put(folder / name, f"{place}/{name}")


@contextlib.contextmanager
def at_host(url: str) -> Iterator[tuple[Any, str]]:
    """The file system of a URL and the path in it. A fault of the host in the block is a
    `SourceError`."""
    system, path = file_system(url)
    try:
        yield system, path
    except Exception as error:  # each driver has errors of its own
        raise SourceError(f"{url}: {told(error)}. Run the command again") from None


def put(file: Path, url: str) -> None:
    """Copy a file to `url`. A kill leaves the earlier file there, or none."""
    with at_host(url) as (system, path):
        if url.startswith("file:"):  # fsspec would write to the file itself
            target = Path(path)
            with locked(lock_path(target), target), replacing(target) as partial:
                shutil.copyfile(file, partial)
        else:
            system.put_file(str(file), path)


def unseal(url: str, records: str | None = None) -> None:
    """Remove the seal of the shards at `url`, and the records of all parts but those in the folder
    `records`, because other shards will take the names of theirs. None: the records of all."""
    with at_host(url) as (system, path):
        system.invalidate_cache()  # other machines write there
        if system.exists(f"{path}/{NAME}"):
            system.rm(f"{path}/{NAME}")
        for file in system.find(f"{path}/parts"):
            kept = records is not None and f"/{records}/" in file
            if file.endswith(".json") and not kept:
                system.rm(file)


def require_writable(url: str) -> None:
    """A `ConfigError` if `upload` cannot write to this scheme, or a package is missing."""
    if url.startswith(("http:", "https:", "pipe:")):
        raise ConfigError(f"--to {url}: this scheme cannot be written. Name another, such as s3://")
    file_system(url)


class Record(Strict):
    """The index of a part, and the bytes and the SHA-256 of its shards."""

    index: Index
    shards: dict[ShardName, tuple[Count, Annotated[str, Field(pattern="^[0-9a-f]{64}$")]]]

    @model_validator(mode="after")
    def _describe_the_same_shards(self) -> Self:
        names = {name for split in self.index.splits.values() for name in split.shards}
        if names != {*self.shards}:
            raise ValueError("index and shards name different shards")
        return self


class Place:
    """A writable URL with the shards of `folder`, which ends with DATASET/FEATURES, and the records
    of parts with one identity."""

    def __init__(self, url: str, folder: Path, identity: str) -> None:
        self.url, self.identity = f"{url.rstrip('/')}/{folder.name}", identity[:16]

    def record(self, part: Part) -> Record | None:
        """The record of the part; None: not made, or the record is damaged."""
        with at_host(self._address(part)) as (system, path):
            system.invalidate_cache()  # other machines write there
            content = system.cat_file(path) if system.exists(path) else b""
        try:
            return Record.model_validate_json(content)
        except ValueError:
            return None

    def put_part(self, made: Path, part: Part) -> None:
        """Copy the shards of a part, and the record after them."""
        index, seal = read_index(made), open_shards(made)
        names = [name for split in index.splits.values() for name in split.shards]
        unseal(self.url, self.identity)
        for name in names:
            put(seal.check(name), f"{self.url}/{name}")
        shards = {name: (seal.sizes[name], seal.hashes[name]) for name in names}
        record = made / "record.json"
        write_json(record, {"index": index.model_dump(), "shards": shards})
        put(record, self._address(part))

    def join(self, count: int) -> None:
        """Write the index and the seal if the records of all parts are there."""
        records = []
        for number in range(1, count + 1):
            if (record := self.record(Part(number, count))) is None:
                say(f"{self.url}: part {number}/{count} is not there yet")
                return
            records.append(record)
        indexes = [record.index for record in records]
        whole, *others = [index.model_copy(update={"splits": {}}) for index in indexes]
        if other := next((index for index in others if index != whole), None):
            raise DataError(
                f"{self.url}: the parts have features of different settings or weights, such as "
                f"{other.attributes} and {whole.attributes}. Remove parts/{self.identity} and "
                "make the parts again"
            )
        files = {name: facts for record in records for name, facts in record.shards.items()}
        with TemporaryDirectory() as folder:
            index = joined_index(indexes)
            write_json(Path(folder, INDEX), index.model_dump())
            write_seal(Path(folder), files)
            for name in (INDEX, NAME):
                put(Path(folder, name), f"{self.url}/{name}")
        say(f"{self.url}: the index of {sum(s.images for s in index.splits.values()):,} images")

    def _address(self, part: Part) -> str:
        return f"{self.url}/parts/{self.identity}/{part.number}-of-{part.count}.json"


def make_part(
    place: Place, parts: Parts, inputs: Inputs, extract: Callable[[Path, Path], None]
) -> None:
    """Make the wanted part and copy it to `place`; the last part completes the shards there.

    Args:
        parts: the folder for the files of the part, which are removed afterwards. What the same
            part of another identity has left there is removed too.
        inputs: if there is no store, the features of the part's images are made.
        extract: makes features: the caption table of the images, the path of the store.

    Raises:
        SourceError: the host does not take the files.
    """
    part = parts.wanted
    assert part is not None
    captions, store = inputs.captions, inputs.store
    folder = parts.folder / "at_url" / f"{part.number}-of-{part.count}"
    made = folder / place.identity
    there = f"{place.url}: part {part.number}/{part.count} is already there"
    with locked(lock_path(folder), folder):
        if place.record(part) is not None:
            say(there)
        else:
            work = made.with_name(f"{made.name}.work")
            for other in {*folder.glob("*")} - {made, work}:
                remove(other)
            if not made.exists():
                ids = _image_ids(captions, inputs.images_per_shard, part)
                part.refuse_empty(ids, "shards")
                used = store
                if not store.is_file():
                    used, table = work / store.name, work / captions.name
                    _write_rows(captions, ids, table)
                    extract(table, used)
                with FeatureStore(used) as features:
                    expected = distinct(captions, "image_id") if used == store else ids
                    rows = store_rows(expected, captions, features)
                    Shards(inputs, features, rows).write(made, part)
            # Another machine may have been faster, and its shards may be sealed.
            if place.record(part) is not None:
                say(there)
            else:
                place.put_part(made, part)
        remove(folder)
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
