"""`index.json`: the content of a folder of shards, for readers that have not opened a shard yet.

The seal of the folder holds the hash of the index and of each shard.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from manymatch.config.strict import Strict
from manymatch.util import seal
from manymatch.util.errors import DataError, content_of, nearest
from manymatch.util.json_file import read_object

INDEX = "index.json"
NAME = seal.NAME
"""The file whose hash stands for all shards and their index: the seal."""
REMEDY = "Run the stage 'shards' again, or 'dvc checkout --force'"
Count = Annotated[int, Field(ge=1)]
ShardName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+\.tar$")]
"""A file name without folders: an index from elsewhere cannot point outside its own folder."""


class Split(Strict):
    """The shards of one split in table order; both lists have one entry for each shard."""

    shards: list[ShardName]
    shard_images: list[Count]
    images: Count
    captions: Count

    @model_validator(mode="after")
    def _describe_the_same_shards(self) -> Self:
        if len(self.shards) != len(self.shard_images):
            raise ValueError("shards and shard_images have different lengths")
        if sum(self.shard_images) != self.images:
            raise ValueError("shard_images do not add up to images")
        return self


class Index(Strict):
    """The origin of the shards, and the splits.

    `dtype` is the type of the features, uint8 for pixels. `boxes`: every sample has boxes.
    `attributes` are those of the feature store, such as backbone and weights. `parser` is the spaCy
    model of the scene graphs, if the table of the graphs names the model.
    """

    dataset: str
    features: str
    width: Count
    max_regions: Count
    dtype: Literal["float16", "float32", "uint8"]
    boxes: bool
    attributes: dict[str, str]
    parser: str | None = None
    splits: dict[str, Split]

    def split(self, name: str) -> Split:
        """The split `name`. For an unknown name, a `DataError` names the nearest one."""
        if name not in self.splits:
            raise DataError(
                f"shards of {self.dataset}/{self.features}: no split '{name}'"
                f"{nearest(name, self.splits)}"
            )
        return self.splits[name]

    @property
    def sample_bytes(self) -> int:
        """Upper bound of the bytes of one image's arrays in a shard."""
        value_bytes = {"uint8": 1, "float16": 2, "float32": 4}[self.dtype]
        return self.max_regions * (self.width * value_bytes + (16 if self.boxes else 0))


def read_index(folder: Path) -> Index:
    """The index of a folder of shards. A missing or malformed index is a `DataError`."""
    path = folder / INDEX
    if not path.is_file():
        raise DataError(f"{path}: no such file. Run the stage 'shards' first, or 'dvc repro'")
    open_shards(folder).check(INDEX)
    with content_of(path, "an index of shards", REMEDY):
        return Index.model_validate(read_object(path))


def read_head(folder: Path, dataset: str, features: str) -> Index:
    """The index in a folder without shards, which hold `features` of `dataset`. Other shards, or
    fewer bytes in the seal than the images need, are a `DataError`."""
    index, sizes = read_index(folder), open_shards(folder).sizes
    if (index.dataset, index.features) != (dataset, features):
        raise DataError(
            f"{folder}: shards of {index.dataset}/{index.features}, not of {dataset}/{features}. "
            f"Correct shards.urls.{dataset} in params.yaml, or use the names of the shards"
        )
    for split in index.splits.values():
        for name, images in zip(split.shards, split.shard_images, strict=True):
            if 1024 * images > sizes.get(name, 0):  # a header and a content each
                raise DataError(f"{folder}: the seal has no '{name}' of {images} images")
    return index


def open_shards(folder: Path) -> seal.Seal:
    """The seal of a folder of shards. A shard is compared with its hash when it is read first."""
    return seal.open_sealed(folder, REMEDY, whole_bytes=None)
