"""`index.json`: what a folder of shards holds, so that readers know it before they open one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from manymatch.config.strict import Strict
from manymatch.system.errors import DataError, nearest

NAME = "index.json"
Count = Annotated[int, Field(ge=1)]
ShardName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+\.tar$")]
"""A bare file name: an index from elsewhere cannot point outside its folder."""


class Split(Strict):
    """The shards of one split in table order; the three lists run in parallel."""

    shards: list[ShardName]
    shard_images: list[Count]
    sha256: list[str]
    images: Count
    captions: Count


class Index(Strict):
    """Of what the shards were made, and the splits. `dtype` is that of the features, uint8 of
    pixels; `boxes`: every sample has them; `attributes` are those of the feature store: backbone,
    weights and the like."""

    dataset: str
    features: str
    width: Count
    max_regions: Count
    dtype: Literal["float16", "uint8"] = "float16"
    boxes: bool
    attributes: dict[str, str]
    splits: dict[str, Split]

    def split(self, name: str) -> Split:
        """One split; an unknown name is a `DataError` that names the nearest."""
        if name not in self.splits:
            raise DataError(
                f"shards of {self.dataset}/{self.features}: no split '{name}'"
                f"{nearest(name, self.splits)}"
            )
        return self.splits[name]

    @property
    def sample_bytes(self) -> int:
        """Upper bound of what one image's arrays take in a shard."""
        value_bytes = 2 if self.dtype == "float16" else 1
        return self.max_regions * (self.width * value_bytes + (16 if self.boxes else 0))


def read_index(folder: Path) -> Index:
    """The index of a folder of shards; missing or malformed, it is a `DataError`."""
    path = folder / NAME
    try:
        return Index.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; run the stage 'shards' first") from None
    except (OSError, ValidationError) as error:
        problem = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise DataError(f"{path}: not an index of shards ({problem}); write them again") from None
