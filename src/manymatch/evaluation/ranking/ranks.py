"""Ranks of the own pairs and the best items, both ways, in one pass over the scores.

Memory grows with the gallery, never with queries times gallery.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from manymatch.evaluation.ranking.blocks import (
    CAPTIONS_PER_BLOCK,
    IMAGES_PER_BLOCK,
    Block,
    Score,
    checked,
    holding,
    owner_blocks,
)
from manymatch.evaluation.ranking.top import Top
from manymatch.methods.base import Embeddings
from manymatch.system.parallel_map import on_one_core


@dataclass(frozen=True)
class Direction:
    """`ranks (q,)`: 1-based rank of each query's best own item; `items`, `scores (q, depth)`: the
    best of the gallery, highest score first, in float32 or the scores' wider type. All on the
    CPU."""

    ranks: Tensor
    items: Tensor
    scores: Tensor


@dataclass(frozen=True)
class Ranking:
    """Image to text (queries are images) and text to image."""

    i2t: Direction
    t2i: Direction


def rank(
    score: Score,
    images: Embeddings,
    texts: Embeddings,
    owner: Tensor,
    depth: int = 0,
    *,
    t2i_score: Score | None = None,
    images_per_block: int = IMAGES_PER_BLOCK,
    captions_per_block: int = CAPTIONS_PER_BLOCK,
) -> Ranking:
    """Rank every caption for every image and every image for every caption.

    Args:
        score: `(images, texts) -> (n, m)`.
        images, texts: of the whole split, on one device.
        owner: `(m,)` row of each caption's image, ascending; every image has a caption.
        depth: how many of the best items to keep.
        t2i_score: what captions rank images by if not by `score` (`Method.t2i_score`).

    Ranks are pessimistic: a foreign item of equal score ranks before the own one. Own items of
    one image do not stand in each other's way. Scores are compared exactly, whatever their
    floating-point type, which may differ between blocks.

    Raises:
        DataError: a score is not finite, or `owner` does not fit.
    """
    blocks = owner_blocks(owner.cpu(), len(images), images_per_block, captions_per_block)
    owner = owner.to(images.vectors.device)
    i2t = _Way(len(images), len(texts), depth, owner.device)
    t2i = _Way(len(texts), len(images), depth, owner.device)
    # The diagonal first: it holds every own pair, with whose scores all others are compared.
    order = [(block, block) for block in blocks]
    order += [(one, other) for one in blocks for other in blocks if one is not other]
    pairs = [(one[0], other[1]) for one, other in order]
    kinds = [score] if t2i_score is None else [score, t2i_score]
    threads = torch.get_num_threads()
    with torch.inference_mode(), on_one_core():
        for number, found in enumerate(_scored_ahead(kinds, images, texts, pairs, threads)):
            rows, columns = pairs[number]
            own = _own_pairs(owner, rows, columns) if number < len(blocks) else None
            scores = [checked(each) for each in found]
            i2t.take(rows, columns.start, scores[0], own)
            t2i.take(columns, rows.start, scores[-1].T, own and own[::-1])
    return Ranking(i2t.result(), t2i.result())


def _scored_ahead(
    kinds: Sequence[Score], images: Embeddings, texts: Embeddings, pairs: list[Block], threads: int
) -> Iterator[list[Tensor]]:
    """The scores of each kind of each block, the next one's being made meanwhile: ranking keeps
    one core busy for a while, and the others should not wait for it. `threads` score."""

    def scored(pair: Block) -> list[Tensor]:
        with torch.inference_mode():  # a property of the thread
            parts = images.rows(pair[0]), texts.rows(pair[1])
            return [score(*parts) for score in kinds]

    with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(threads,)) as ahead:
        waiting = ahead.submit(scored, pairs[0])
        for pair in [*pairs[1:], None]:
            scores = waiting.result()
            if pair is not None:
                waiting = ahead.submit(scored, pair)
            yield scores


def _own_pairs(owner: Tensor, images: slice, texts: slice) -> tuple[Tensor, ...]:
    """Rows and columns of the own pairs in the block of these images and their captions."""
    columns = torch.arange(texts.stop - texts.start, device=owner.device)
    return owner[texts] - images.start, columns


class _Way:
    """What is known so far of the queries of one direction."""

    def __init__(self, queries: int, items: int, depth: int, device: torch.device) -> None:
        self.best_own = torch.full((queries,), -torch.inf, device=device)
        self.rank = torch.ones(queries, dtype=torch.int64, device=device)
        self.top = Top(queries, min(depth, items), device)

    def take(
        self, queries: slice, first: int, scores: Tensor, own: tuple[Tensor, ...] | None
    ) -> None:
        """Take in `scores (q, g)` of the queries against the items `first .. first + g`; `own`:
        rows and columns of the queries' own pairs, if these are all here."""
        self.top.update(queries, first, scores)
        if own is not None:
            scores = self._take_own(queries, scores, own)
        better = scores >= self.best_own[queries, None]
        self.rank[queries] += better.sum(1, dtype=torch.int32)

    def _take_own(self, queries: slice, scores: Tensor, own: tuple[Tensor, ...]) -> Tensor:
        """Note the own pairs' best score; give the others', in which NaN (never >=) stands for
        own."""
        self.best_own = holding(self.best_own, scores)
        found = scores[own].to(self.best_own.dtype)
        self.best_own[queries].scatter_reduce_(0, own[0], found, "amax")
        return scores.index_put(own, scores.new_tensor(torch.nan))

    def result(self) -> Direction:
        return Direction(self.rank.cpu(), self.top.items.cpu(), self.top.scores.cpu())
