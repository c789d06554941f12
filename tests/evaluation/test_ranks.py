"""Ranks against hand-computed tables and a naive full matrix."""

import threading
from unittest.mock import patch

import pytest
import torch
from made_scores import looked_up, naive_ranks

from manymatch.evaluation.protocols.recall import recall_of
from manymatch.evaluation.ranking.ranks import rank
from manymatch.methods.shared.method import Embeddings
from manymatch.model import scores as blocks
from manymatch.model.scores import blocks_by_image
from manymatch.util.errors import DataError


def in_blocks(images, captions):
    return patch.multiple(blocks, IMAGES_PER_BLOCK=images, CAPTIONS_PER_BLOCK=captions)


def _rank(table, index, depth=0, sizes=(100, 100), **more):
    with in_blocks(*sizes):
        return rank(*looked_up(table), torch.tensor(index), depth, **more)


TYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", TYPES)
def test_equal_scores_of_every_type_are_ties(dtype):
    index = torch.arange(15).repeat_interleave(2).tolist()
    for sizes in ((100, 100), (7, 9)):
        ranking = _rank(torch.full((15, 30), 0.1, dtype=dtype), index, 3, sizes)
        assert ranking.i2t.ranks.tolist() == [29] * 15
        assert ranking.t2i.ranks.tolist() == [15] * 30
        assert recall_of(ranking)["rsum"] == 0


@pytest.mark.parametrize("dtype", TYPES)
def test_scores_one_step_apart_have_different_ranks(dtype):
    """Values `1 + k eps`: of float64 they are all one in float32."""
    for sizes in ((1, 1), (2, 5), (100, 100)):
        generator = torch.Generator().manual_seed(1)
        index = [0, 0, 1, 2, 2, 2, 3, 4]
        steps = torch.randint(0, 6, (5, 8), generator=generator)
        table = (1 + steps.double() * torch.finfo(dtype).eps).to(dtype)
        assert len(table.unique()) == 6
        ranking = _rank(table, index, 4, sizes)
        assert (ranking.i2t.ranks.tolist(), ranking.t2i.ranks.tolist()) == naive_ranks(table, index)
        _check_top(ranking.i2t.items, ranking.i2t.scores, table)
        _check_top(ranking.t2i.items, ranking.t2i.scores, table.T)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 5)])
def test_blocks_may_have_different_types(sizes):
    """The types take turns from block to block, and no value loses digits in its own."""
    types = torch.float32, torch.float64, torch.bfloat16
    index = [0, 0, 1, 2, 2, 2, 3, 4]
    table = torch.randint(0, 6, (5, 8), generator=torch.Generator().manual_seed(2)).double()
    table[1::2] += table[1::2] * 2**-40
    read, images, texts = looked_up(table)
    calls = iter(range(1000))

    def score(images, texts):
        exact = read(images, texts)
        kind = types[next(calls) % len(types)]
        return exact.to(kind) if torch.equal(exact.to(kind).double(), exact) else exact

    with in_blocks(*sizes):
        ranking = rank(score, images, texts, torch.tensor(index), 4)
    assert (ranking.i2t.ranks.tolist(), ranking.t2i.ranks.tolist()) == naive_ranks(table, index)
    _check_top(ranking.i2t.items, ranking.i2t.scores.double(), table)
    _check_top(ranking.t2i.items, ranking.t2i.scores.double(), table.T)


@pytest.mark.parametrize("two", [False, True])
def test_equals_naive_with_uneven_blocks(two):
    """Captions may rank by another score."""
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        n = int(torch.randint(1, 12, (1,), generator=generator))
        counts = torch.randint(1, 7, (n,), generator=generator)
        index = torch.arange(n).repeat_interleave(counts).tolist()
        there, other = torch.randint(0, 6, (2, n, len(index)), generator=generator).float()
        back = other if two else there  # with many ties
        expected = naive_ranks(there, index)[0], naive_ranks(back, index)[1]
        for sizes in [(1, 1), (2, 7), (100, 100)]:
            t2i_score = looked_up(back)[0] if two else None
            ranking = _rank(there, index, 4, sizes, t2i_score=t2i_score)
            assert (ranking.i2t.ranks.tolist(), ranking.t2i.ranks.tolist()) == expected
            _check_top(ranking.i2t.items, ranking.i2t.scores, there)
            _check_top(ranking.t2i.items, ranking.t2i.scores, back.T)


def _check_top(items, scores, table):
    depth = min(4, table.shape[1])
    assert torch.equal(scores, table.topk(depth, dim=1).values.to(scores.dtype))
    assert torch.equal(table.gather(1, items).to(scores.dtype), scores)
    assert all(len(set(row)) == depth for row in items.tolist())


def test_scores_that_are_not_finite_are_refused():
    for value in (torch.nan, torch.inf, -torch.inf):
        for position in ((0, 0), (2, 1)):
            table = torch.rand(3, 3)
            table[position] = value
            with pytest.raises(DataError, match="not finite"):
                _rank(table, [0, 1, 2], sizes=(1, 100))
            with pytest.raises(DataError, match="not finite"):
                _rank(torch.rand(3, 3), [0, 1, 2], t2i_score=looked_up(table)[0])


@pytest.mark.parametrize(("index", "message"), [([0, 0, 2], "image 1"), ([0, 2, 1], "order")])
def test_owners_that_do_not_fit_are_refused(index, message):
    with pytest.raises(DataError, match=message):
        _rank(torch.rand(3, 3), index)


def test_blocks_end_with_an_images_captions():
    index = torch.tensor([0, 0, 1, 1, 1, 2, 3, 3, 3, 3, 3])
    with in_blocks(2, 4):
        assert blocks_by_image(index, 4) == [
            (slice(0, 1), slice(0, 2)),
            (slice(1, 3), slice(2, 6)),
            (slice(3, 4), slice(6, 11)),  # one image with more captions than a block
        ]


def test_the_thread_that_scores_is_kept_because_a_fork_beside_its_end_can_hang():
    threads = []

    def score(images, texts):
        threads.append(threading.current_thread())
        return images.vectors[:, 0] @ texts.vectors[:, 0].T

    sets = Embeddings(torch.randn(4, 1, 8))
    for _ in range(2):
        with in_blocks(2, 2):
            rank(score, sets, sets, torch.arange(4))
    assert len(set(threads)) == 1 and threads[0].is_alive()
