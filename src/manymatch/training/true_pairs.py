"""Negatives without false negatives: the true pairs of a training split, which losses leave out.

In a batch every caption of another image is a negative. Some of these captions are true of the
image. With `training.negatives: oracle` the losses know them from the data set's judgments.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from manymatch.batch.batch import Batch
from manymatch.datasets.base import RELEVANCE
from manymatch.util.errors import ConfigError
from manymatch.util.parquet_file import read_table


class TruePairs:
    """The true pairs of training images and captions of other images.

    `image_ids` are the images of the training split. A relevance table (`datasets.base.RELEVANCE`)
    without a pair of a training image is a `ConfigError`.
    """

    def __init__(self, relevance: Path, image_ids: Sequence[str]) -> None:
        table = read_table(relevance, RELEVANCE, "Run the stage 'captions'.")
        trained = set(image_ids)
        columns = (table[name].to_pylist() for name in RELEVANCE.names)
        pairs = [pair for pair in zip(*columns, strict=True) if pair[0] in trained]
        if not pairs:
            raise ConfigError(
                f"training.negatives: oracle: {relevance} has no pairs of training images. Set "
                "negatives to batch, or take a data set whose true pairs are known, such as scenes."
            )
        images, captions = zip(*pairs, strict=True)
        self._images = {name: row for row, name in enumerate(dict.fromkeys(images))}
        self._captions = {name: row for row, name in enumerate(dict.fromkeys(captions))}
        self._width = len(self._captions) + 1
        """Captions without a further image share the last row, of which no pair is true."""
        rows = [self._images[i] * self._width + self._captions[c] for i, c in pairs]
        self._keys = torch.tensor(rows).sort().values

    def numbered(self, batch: Batch) -> Batch:
        """The batch with the rows of its images and captions here."""
        images, captions = len(self._images), len(self._captions)
        return replace(
            batch,
            image_rows=torch.tensor([self._images.get(name, images) for name in batch.image_ids]),
            caption_rows=torch.tensor(
                [self._captions.get(name, captions) for name in batch.caption_ids]
            ),
        )

    def rows(self, parts: Sequence[Batch]) -> tuple[Tensor, Tensor]:
        """The rows of the images `(n,)` and captions `(m,)` of all parts of a batch."""
        rows = [(part.image_rows, part.caption_rows) for part in parts]
        images, captions = (torch.cat(column) for column in zip(*rows, strict=True))
        return images, captions

    def among(self, image_rows: Tensor, caption_rows: Tensor) -> Tensor:
        """`(n, m)` bool: the true pairs of images `(n,)` and captions `(m,)` of other images."""
        keys = image_rows[:, None] * self._width + caption_rows
        self._keys = known = self._keys.to(keys.device)
        return known[torch.searchsorted(known, keys).clamp(max=len(known) - 1)] == keys
