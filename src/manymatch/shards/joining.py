"""Joining several folders of shards to one folder."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from manymatch.shards.index import NAME, Split, read_index
from manymatch.util.errors import DataError
from manymatch.util.files import has_sha256, replacing
from manymatch.util.json_file import write_hashed_object


def join(parts: Sequence[Path], folder: Path) -> None:
    """Write all shards of `parts`, which have no shard in common, to `folder` with one index.

    Raises:
        DataError: a part is damaged.
    """
    indexes = {part: read_index(part) for part in parts}
    names = {name for index in indexes.values() for name in index.splits}
    with replacing(folder) as partial:
        partial.mkdir()
        for part, index in indexes.items():
            for split in index.splits.values():
                _take(part, split, partial)
        splits = {
            name: _joined([i.splits[name] for i in indexes.values() if name in i.splits])
            for name in names
        }
        whole = indexes[parts[0]].model_copy(update={"splits": splits})
        write_hashed_object(partial / NAME, whole.model_dump())


def _take(part: Path, split: Split, folder: Path) -> None:
    """Link the shards of a part into `folder`, or copy them if `folder` is on another disk."""
    for name, expected in zip(split.shards, split.sha256, strict=True):
        source = part / name
        if not has_sha256(source, expected):
            raise DataError(f"{source}: missing or damaged. Remove {part} and make this part again")
        try:
            os.link(source, folder / name)
        except OSError:
            shutil.copyfile(source, folder / name)


def _joined(splits: Sequence[Split]) -> Split:
    """One entry of the index from the entries of the parts, with the shards in order again."""
    columns = [zip(part.shards, part.shard_images, part.sha256, strict=True) for part in splits]
    shards = sorted(itertools.chain.from_iterable(columns))
    return Split(
        shards=[name for name, _, _ in shards],
        shard_images=[images for _, images, _ in shards],
        sha256=[digest for _, _, digest in shards],
        images=sum(part.images for part in splits),
        captions=sum(part.captions for part in splits),
    )
