"""Which images and captions match: the own pairs, and what a data set's judgments add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from torch import Tensor

from manymatch.datasets.base import RELEVANCE
from manymatch.system.errors import DataError


@dataclass(frozen=True)
class Judgments:
    """`extra (p, 2)`: rows (image, caption) of true pairs beyond the own ones, without repetition;
    `complete`: every true pair is known, so that every query can be scored."""

    extra: Tensor
    complete: bool

    def pairs(self, owner: Tensor) -> Tensor:
        """Own and extra pairs `(m + p, 2)`."""
        own = torch.stack([owner, torch.arange(len(owner))], 1)
        return torch.cat([own, self.extra])

    def __bool__(self) -> bool:
        return len(self.extra) > 0


def read_judgments(
    path: Path, image_ids: Sequence[str], caption_ids: Sequence[str], owner: Tensor
) -> Judgments:
    """The judgments in a relevance table (`datasets.base.RELEVANCE`) on the given images and
    captions; pairs of other splits are left out."""
    table = _read(path)
    image = pc.index_in(table["image_id"], value_set=pa.array(image_ids, pa.string()))
    caption = pc.index_in(table["caption_id"], value_set=pa.array(caption_ids, pa.string()))
    known = pc.and_(pc.is_valid(image), pc.is_valid(caption))
    columns = [np.asarray(column.filter(known), dtype=np.int64) for column in (image, caption)]
    extra = torch.from_numpy(np.unique(np.stack(columns, 1), axis=0))
    extra = extra[owner[extra[:, 1]] != extra[:, 0]]
    return Judgments(extra, (table.schema.metadata or {}).get(b"complete") == b"true")


def _read(path: Path) -> pa.Table:
    try:
        table = pq.read_table(path)
        return table.select(RELEVANCE.names).cast(RELEVANCE.with_metadata(table.schema.metadata))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; run the stage 'captions' first") from None
    except (OSError, KeyError, pa.ArrowException) as error:
        first = str(error).partition("\n")[0]
        raise DataError(
            f"{path}: not a table of (image_id, caption_id) pairs ({first}); "
            "run the stage 'captions' again"
        ) from None
