"""Items whose image features are extracted already: feature stores, and shards of this project."""

import hashlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from manymatch.batch.collate import ImageItem, whole_item
from manymatch.features.store import FeatureStore
from manymatch.search.index.manifest import REMEDY
from manymatch.search.index.sources import Entry, Loaded, Source, changed_ns
from manymatch.shards.fetch import fetch
from manymatch.shards.index import open_shards, read_index
from manymatch.shards.read import samples
from manymatch.shards.sample import JSON
from manymatch.util.errors import DataError

if TYPE_CHECKING:
    from manymatch.methods.shared.embeddings import Embeddings
    from manymatch.model.model import Model


class _Features(Source):
    """A source of image features, which must be those of the model."""

    def encode(self, model: "Model", contents: Iterable[Any]) -> "Embeddings":
        return model.encode_items(contents)

    def _check(self, attributes: dict[str, str], model: "Model") -> None:
        """Refuse features that were not extracted as the model's: a `DataError` for another
        backbone, other weights or another preprocessing."""
        for key, value in model.facts["extraction"].items():
            # A folder's place changes no features: the hash of the weights says which they are.
            if key != "model" and attributes.get(key) != value:
                raise DataError(
                    f"{self.path}: the features' {key} is '{attributes.get(key)}', but the model "
                    f"was trained with '{value}'. Name features with the model's extraction."
                )


class StoreFile(_Features):
    """The images of an HDF5 feature store; their paths are their image ids."""

    kind = "store"

    @cached_property
    def _store(self) -> FeatureStore:
        return FeatureStore(self.path)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {image_id: row for row, image_id in enumerate(self._store.image_ids)}

    def entries(self) -> Iterator[Entry]:
        changed = changed_ns(self.path.stat())
        yield from (Entry(image_id, mtime_ns=changed) for image_id in self._store.image_ids)

    def sha256(self, entry: Entry) -> str:
        return _hash(self._item(entry))

    def load(self, model: "Model", entries: Iterable[Entry]) -> Iterator[Loaded]:
        self._check(self._store.attributes, model)
        for entry in entries:
            item = self._item(entry)
            yield Entry(entry.path, mtime_ns=entry.mtime_ns, sha256=_hash(item)), item

    def _item(self, entry: Entry) -> ImageItem:
        features, counts, boxes = self._store.read([self._rows[entry.path]])
        count = int(counts[0])
        return whole_item(
            entry.path, features[0, :count], None if boxes is None else boxes[0, :count]
        )


class ShardFolder(_Features):
    """The images of WebDataset shards; their paths are their image ids.

    Facts of an item are its split, the file of the image, and its captions.
    """

    kind = "shards"

    def __init__(self, path: Path, split: str | None) -> None:
        super().__init__(path, split)
        self._index = read_index(path)
        self._splits = sorted(self._index.splits)
        if split is not None:
            self._index.split(split)  # refuses an unknown name
            self._splits = [split]
        self._rows: dict[str, int] = {}

    def entries(self) -> Iterator[Entry]:
        sealed = open_shards(self.path).hashes
        for split in self._splits:
            shards = self._index.split(split)
            hashes = np.repeat([sealed[name] for name in shards.shards], shards.shard_images)
            order = range(len(shards.shards))
            for row, raw in fetch(self.path, shards, order, range(shards.images), {JSON}):
                sample = orjson.loads(raw[JSON])
                image_id = sample["image_id"]
                sha256 = hashlib.sha256(f"{hashes[row]} {image_id}".encode()).hexdigest()
                captions = [caption["text"] for caption in sample["captions"]]
                facts = {"split": split, "file": sample["file"], "captions": captions}
                self._rows[image_id] = row
                yield Entry(image_id, sha256=sha256, facts=facts)

    def load(self, model: "Model", entries: Iterable[Entry]) -> Iterator[Loaded]:
        self._check(self._index.attributes, model)
        waiting = list(entries)
        for split in self._splits:
            wanted = {e.path: e for e in waiting if e.facts["split"] == split}
            rows = (self._rows[path] for path in wanted)
            for sample in samples(self.path, split, rows):
                item = whole_item(sample.image_id, sample.features, sample.boxes)
                yield wanted[sample.image_id], item

    def picture(self, item: dict[str, Any]) -> bytes:
        """The thumbnail, which is 112 pixels wide or high unless params.yaml says otherwise."""
        before = takewhile(lambda split: split != item["split"], self._splits)
        row = item["row"] - sum(self._index.split(split).images for split in before)
        known = item["split"] in self._splits  # the shards may have been written again
        sample = next(samples(self.path, item["split"], [row]), None) if known else None
        if sample is None or sample.image_id != item["path"] or sample.thumbnail is None:
            raise DataError(f"{self.path}: no thumbnail of '{item['path']}'. {REMEDY}")
        return sample.thumbnail


def _hash(item: ImageItem) -> str:
    """The hash of features and boxes."""
    digest = hashlib.sha256(f"{item.features.shape}".encode() + item.features.tobytes())
    if item.boxes is not None:
        digest.update(item.boxes.tobytes())
    return digest.hexdigest()
