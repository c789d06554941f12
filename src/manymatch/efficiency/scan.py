"""SCAN's cross-attention on the same data, for comparison: untrained, for values cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.efficiency.cost import IMAGES_PER_BATCH, Cost
from manymatch.efficiency.gallery import best
from manymatch.efficiency.operations import multiply_adds
from manymatch.efficiency.query import Latency
from manymatch.efficiency.timing import median_seconds
from manymatch.evaluation.trained import Trained
from manymatch.shards.read import batches
from manymatch.similarities.cross_attention import cross_attention

_BLOCK = 500
"""Images whose attention to a caption is computed at once."""
_REGIONS = 36
"""Of an image of which there are only pixels: BUTD's."""
_QUERIES = 5


@dataclass(frozen=True)
class Shape:
    """Regions of an image, words of a caption, size of both."""

    regions: int
    words: int
    size: int


def shape_of(trained: Trained, split: str, size: int) -> Shape:
    """As this model's data has them, on average over a batch."""
    stream = batches(trained.shards, split, trained.vocabulary, IMAGES_PER_BATCH)
    batch = next(iter(stream))
    pixels = trained.index.dtype == "uint8"
    regions = _REGIONS if pixels else _mean_length(batch.region_mask)
    return Shape(regions, _mean_length(batch.word_mask), size)


def _mean_length(mask: Tensor) -> int:
    return round(float(mask.sum(1).float().mean()))


def cross_attention_cost(shape: Shape, sizes: Sequence[int], device: torch.device) -> Cost:
    """The row of what compares every region with every word."""
    scan = Scan(shape, device)
    return Cost(
        name="cross-attention",
        method="scan",
        setting=None,
        elements=shape.regions,
        size=shape.size,
        parameters=None,
        multiply_adds=scan.operations(),
        step=None,
        test=None,
        query=Latency(None, None, scan.search(sizes)),
    )


class Scan:
    """Made-up regions and words of a shape, and what scoring them costs."""

    def __init__(self, shape: Shape, device: torch.device) -> None:
        generator = torch.Generator().manual_seed(0)

        def made_up(*sizes: int) -> Tensor:
            return normalize(torch.randn(*sizes, generator=generator), dim=2).to(device)

        self.device = device
        self.regions = made_up(_BLOCK, shape.regions, shape.size)
        self.words = made_up(_QUERIES, shape.words, shape.size)

    def score(self, images: int, caption: int) -> Tensor:
        """`(images,)` scores of the first of them, at most a block, with one caption."""
        regions, words = self.regions[:images], self.words[caption : caption + 1]
        real = torch.ones(regions.shape[:2], dtype=torch.bool, device=self.device)
        spoken = torch.ones(words.shape[:2], dtype=torch.bool, device=self.device)
        return cross_attention(regions, real, words, spoken)[:, 0]

    def operations(self) -> int:
        """Multiply-adds of one similarity."""
        return multiply_adds(lambda: self.score(1, 0))

    def search(self, sizes: Sequence[int]) -> dict[int, float]:
        """Milliseconds to rank galleries of `sizes` for one caption; past a block, the same
        images are scored again and again."""
        with torch.inference_mode():
            return {
                size: 1000
                * median_seconds(partial(self.rank, size), range(_QUERIES), self.device, 2)
                for size in sizes
            }

    def rank(self, size: int, caption: int) -> Tensor:
        """`(10,)`: the best of a gallery for a caption."""
        blocks = (min(_BLOCK, size - start) for start in range(0, size, _BLOCK))
        return best((self.score(count, caption) for count in blocks), 10)
