"""Ranks of the annotated pairs and the best items, in both directions and one pass over the scores.

Memory grows with the gallery, not with queries times gallery.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from manymatch.batch.parallel_map import single_core, start_background
from manymatch.methods.shared.method import Embeddings
from manymatch.model.scores import Block, Score, blocks_by_image, checked, holding
from manymatch.util.progress import track

Mixture = Callable[[Sequence[Tensor]], Sequence[Tensor]]
"""A function that mixes several scores `(n, m)` of a block into one score, or one a direction."""


class Top:
    """The `depth` highest scores `(n, depth)` of n queries and their items, highest first.

    An empty position holds score -inf and item -1. Scores are kept in float32, or in the widest
    type among the blocks.
    """

    def __init__(self, n: int, depth: int, device: torch.device) -> None:
        self.scores = torch.full((n, depth), -torch.inf, device=device)
        self.items = torch.full((n, depth), -1, dtype=torch.int64, device=device)

    def update(self, queries: slice, first: int, scores: Tensor) -> None:
        """Add `scores (q, g)` of the queries against the items `first .. first + g`."""
        self.scores = holding(self.scores, scores)
        scores_so_far, items = self.scores[queries], self.items[queries]
        if scores_so_far.shape[1] == 0:
            return
        if bool(torch.isneginf(scores_so_far[:, -1]).any()):
            new, columns = scores.topk(min(scores_so_far.shape[1], scores.shape[1]), dim=1)
            new_items = columns + first
        else:  # few scores enter now, and to find these first is cheaper than to sort all
            new, columns = _largest(scores, scores_so_far[:, -1])
            new_items = columns + first
        merged, order = torch.cat([scores_so_far, new], 1).topk(scores_so_far.shape[1], dim=1)
        self.scores[queries] = merged
        self.items[queries] = torch.cat([items, new_items], 1).gather(1, order)


def _largest(scores: Tensor, floor: Tensor) -> tuple[Tensor, Tensor]:
    """The `scores (q, g)` above each row's `floor (q,)`, moved to the left and padded with -inf,
    and the columns of these scores."""
    row, column = (scores > floor[:, None]).nonzero(as_tuple=True)
    counts = torch.bincount(row, minlength=len(scores))
    target = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
    values = scores.new_full((len(scores), int(counts.max())), -torch.inf)
    columns = torch.zeros_like(values, dtype=torch.int64)
    values[row, target] = scores[row, column]
    columns[row, target] = column
    return values, columns


@dataclass(frozen=True)
class Direction:
    """`ranks (q,)`: the 1-based rank of each query's best annotated item; `items` and `scores
    (q, depth)`: the best of the gallery, highest score first, in float32 or the wider type of the
    scores. All on the CPU."""

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
    image_index: Tensor,
    depth: int = 0,
    *,
    t2i_score: Score | None = None,
) -> Ranking:
    """Rank every caption for every image and every image for every caption.

    Args:
        score: `(images, texts) -> (n, m)`.
        images, texts: embeddings of the whole split, on one device.
        image_index: `(m,)` row of each caption's image, ascending; every image has a caption.
        depth: number of best items to keep.
        t2i_score: the score for text-to-image ranking if it is not `score` (`Method.t2i_score`).

    Ranks are pessimistic: a wrong item of equal score ranks before an annotated item. Annotated
    items of one query do not count against each other. Scores are compared exactly in their
    floating-point type, which may differ between blocks.

    Raises:
        DataError: a score is not finite, or `image_index` does not fit.
    """
    scores = [score] if t2i_score is None else [score, t2i_score]
    (ranking,) = rank_each(scores, [lambda parts: parts], images, texts, image_index, depth)
    return ranking


def rank_each(
    scores: Sequence[Score],
    mixtures: Sequence[Mixture],
    images: Embeddings,
    texts: Embeddings,
    image_index: Tensor,
    depth: int = 0,
) -> list[Ranking]:
    """`rank` by each of several mixtures of `scores`, which are computed once."""
    blocks = blocks_by_image(image_index.cpu(), len(images))
    image_index = image_index.to(images.vectors.device)
    device, sizes = image_index.device, (len(images), len(texts))
    ways = [
        (_DirectionState(*sizes, depth, device), _DirectionState(*sizes[::-1], depth, device))
        for _ in mixtures
    ]
    # The diagonal is first: it holds the annotated pairs, against which all others are compared.
    order = [(block, block) for block in blocks]
    order += [(first, second) for first in blocks for second in blocks if first is not second]
    pairs = [(first[0], second[1]) for first, second in order]
    threads = torch.get_num_threads()
    with torch.inference_mode(), single_core():
        scored = _prefetched(scores, images, texts, pairs, threads)
        what = f"rank {len(images)} images and {len(texts)} captions (blocks)"
        for number, parts in enumerate(track(scored, what, len(pairs), quiet=True)):
            rows, columns = pairs[number]
            annotated = _annotated(image_index, rows, columns) if number < len(blocks) else None
            for (i2t, t2i), mixture in zip(ways, mixtures, strict=True):
                mixed = [checked(block) for block in mixture(parts)]
                i2t.add(rows, columns.start, mixed[0], annotated)
                t2i.add(columns, rows.start, mixed[-1].T, annotated and annotated[::-1])
    return [Ranking(i2t.result(), t2i.result()) for i2t, t2i in ways]


def _prefetched(
    all_scores: Sequence[Score],
    images: Embeddings,
    texts: Embeddings,
    pairs: list[Block],
    threads: int,
) -> Iterator[list[Tensor]]:
    """Yield all scores of each block.

    The next block is scored in the background by `threads` threads, because ranking a block keeps
    only one core busy.
    """

    def scores_of(pair: Block) -> list[Tensor]:
        torch.set_num_threads(threads)  # this setting and the mode are properties of the thread
        with torch.inference_mode():
            parts = images.rows(pair[0]), texts.rows(pair[1])
            return [score(*parts) for score in all_scores]

    pending = start_background(partial(scores_of, pairs[0]))
    try:
        for pair in [*pairs[1:], None]:
            scores = pending.result()
            if pair is not None:
                pending = start_background(partial(scores_of, pair))
            yield scores
    finally:
        wait([pending])


def _annotated(image_index: Tensor, images: slice, texts: slice) -> tuple[Tensor, ...]:
    """Rows and columns of the annotated pairs in the block of these images and their captions."""
    columns = torch.arange(texts.stop - texts.start, device=image_index.device)
    return image_index[texts] - images.start, columns


class _DirectionState:
    """The ranks and best items of one direction's queries, over the blocks so far."""

    def __init__(self, queries: int, items: int, depth: int, device: torch.device) -> None:
        self.best_annotated = torch.full((queries,), -torch.inf, device=device)
        self.rank = torch.ones(queries, dtype=torch.int64, device=device)
        self.top = Top(queries, min(depth, items), device)

    def add(
        self, queries: slice, first: int, scores: Tensor, annotated: tuple[Tensor, ...] | None
    ) -> None:
        """Add `scores (q, g)` of the queries against the items `first .. first + g`.

        `annotated`: rows and columns of all annotated pairs of the queries; None: they are in
        another block.
        """
        self.top.update(queries, first, scores)
        if annotated is not None:
            self.best_annotated = holding(self.best_annotated, scores)
            values = scores[annotated].to(self.best_annotated.dtype)
            self.best_annotated[queries].scatter_reduce_(0, annotated[0], values, "amax")
            # NaN is never >= a score.
            scores = scores.index_put(annotated, scores.new_tensor(torch.nan))
        better = scores >= self.best_annotated[queries, None]
        self.rank[queries] += better.sum(1, dtype=torch.int32)

    def result(self) -> Direction:
        return Direction(self.rank.cpu(), self.top.items.cpu(), self.top.scores.cpu())
