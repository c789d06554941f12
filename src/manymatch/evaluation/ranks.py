"""Ranks of the own pairs and the best items, both ways, in one pass over the scores.

Memory grows with the gallery, never with queries times gallery.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from manymatch.evaluation.blocks import (
    CAPTIONS_PER_BLOCK,
    IMAGES_PER_BLOCK,
    Block,
    Score,
    checked,
    owner_blocks,
    rows,
)
from manymatch.evaluation.top import Top
from manymatch.methods.base import Embeddings
from manymatch.side_by_side import on_one_core


@dataclass(frozen=True)
class Direction:
    """`ranks (q,)`: 1-based rank of each query's best own item; `items`, `scores (q, depth)`: the
    best of the gallery, highest score first. All on the CPU."""

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
    images_per_block: int = IMAGES_PER_BLOCK,
    captions_per_block: int = CAPTIONS_PER_BLOCK,
) -> Ranking:
    """Rank every caption for every image and every image for every caption.

    Args:
        score: `(images, texts) -> (n, m)`.
        images, texts: of the whole split, on one device.
        owner: `(m,)` row of each caption's image, ascending; every image has a caption.
        depth: how many of the best items to keep.

    Ranks are pessimistic: a foreign item of equal score ranks before the own one. Own items of
    one image do not stand in each other's way.

    Raises:
        DataError: a score is not finite, or `owner` does not fit.
    """
    blocks = owner_blocks(owner.cpu(), len(images), images_per_block, captions_per_block)
    passing = _Pass(owner.to(images.vectors.device), len(images), depth)
    # The diagonal first: it holds every own pair, with whose scores all others are compared.
    order = [(block, block) for block in blocks]
    order += [(one, other) for one in blocks for other in blocks if one is not other]
    pairs = [(one[0], other[1]) for one, other in order]
    threads = torch.get_num_threads()
    with torch.inference_mode(), on_one_core():
        for number, scores in enumerate(_scored_ahead(score, images, texts, pairs, threads)):
            passing.take(pairs[number], checked(scores), holds_own=number < len(blocks))
    return passing.ranking()


def _scored_ahead(
    score: Score, images: Embeddings, texts: Embeddings, pairs: list[Block], threads: int
) -> Iterator[Tensor]:
    """The scores of each block, the next one's being made meanwhile: ranking keeps one core busy
    for a while, and the others should not wait for it. `threads` score."""

    def scored(pair: Block) -> Tensor:
        with torch.inference_mode():  # a property of the thread
            return score(rows(images, pair[0]), rows(texts, pair[1]))

    with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(threads,)) as ahead:
        waiting = ahead.submit(scored, pairs[0])
        for pair in [*pairs[1:], None]:
            scores = waiting.result()
            if pair is not None:
                waiting = ahead.submit(scored, pair)
            yield scores


class _Pass:
    """What is known of all queries so far."""

    def __init__(self, owner: Tensor, n_images: int, depth: int) -> None:
        n_texts, device = len(owner), owner.device
        self.owner = owner
        self.best_own = torch.full((n_images,), -torch.inf, device=device)
        self.own = torch.empty(n_texts, device=device)
        self.i2t_rank = torch.ones(n_images, dtype=torch.int64, device=device)
        self.t2i_rank = torch.ones(n_texts, dtype=torch.int64, device=device)
        self.i2t_top = Top(n_images, min(depth, n_texts), device)
        self.t2i_top = Top(n_texts, min(depth, n_images), device)

    def take(self, block: Block, scores: Tensor, holds_own: bool) -> None:
        images, texts = block
        self.i2t_top.update(images, texts.start, scores)
        self.t2i_top.update(texts, images.start, scores.T)
        if holds_own:
            scores = self._take_own(block, scores)
        self.i2t_rank[images] += (scores >= self.best_own[images, None]).sum(1, dtype=torch.int32)
        self.t2i_rank[texts] += (scores >= self.own[texts]).sum(0, dtype=torch.int32)

    def _take_own(self, block: Block, scores: Tensor) -> Tensor:
        """Note the own pairs' scores; give the others', in which NaN (never >=) stands for own."""
        images, texts = block
        pairs = self.owner[texts] - images.start, torch.arange(scores.shape[1]).to(scores.device)
        own = scores[pairs].to(self.own.dtype)
        self.own[texts] = own
        self.best_own[images].scatter_reduce_(0, pairs[0], own, "amax")
        return scores.index_put(pairs, scores.new_tensor(torch.nan))

    def ranking(self) -> Ranking:
        return Ranking(
            Direction(self.i2t_rank.cpu(), self.i2t_top.items.cpu(), self.i2t_top.scores.cpu()),
            Direction(self.t2i_rank.cpu(), self.t2i_top.items.cpu(), self.t2i_top.scores.cpu()),
        )
