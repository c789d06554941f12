"""The queue of the latest rows."""

from __future__ import annotations

import copy

import pytest
import torch

from manymatch.losses.pseudo_labels import Queue


def rows(first, count):
    return torch.arange(first, first + count, dtype=torch.float32)[:, None].expand(-1, 2)


def test_the_latest_rows_stay_and_the_oldest_go():
    queue = Queue(5, 2)
    assert queue.push(rows(0, 2)).tolist() == []
    assert queue.push(rows(2, 2))[:, 0].tolist() == [0, 1]
    assert queue.push(rows(4, 2))[:, 0].tolist() == [2, 3, 0]
    assert queue.push(rows(6, 1))[:, 0].tolist() == [4, 5, 2, 3]


@pytest.mark.parametrize("size", [0, 3])
def test_a_batch_that_fills_it_leaves_nothing_else(size):
    queue = Queue(size, 2)
    for first in (0, 4):
        assert len(queue.push(rows(first, 4))) == 0


def test_what_it_holds_does_not_change_with_its_source():
    queue, source = Queue(4, 2), rows(0, 2).clone()
    queue.push(source)
    source.fill_(9.0)
    assert queue.push(rows(5, 1))[:, 0].tolist() == [0, 1]


def test_its_state_is_what_was_pushed():
    queue, other = Queue(5, 2), Queue(5, 2)
    other.push(rows(7, 1))
    queue.push(rows(0, 3))
    other.load_state_dict(copy.deepcopy(queue.state_dict()))
    assert other.push(rows(3, 1)).tolist() == queue.push(rows(3, 1)).tolist() == rows(0, 3).tolist()
    started = Queue(5, 2)
    for name, value in started.state_dict().items():  # as a warm start does
        value.copy_(other.state_dict()[name])
    assert started.push(rows(9, 1))[:, 0].tolist() == [3, 0, 1, 2]
    assert copy.deepcopy(queue).push(rows(9, 1))[:, 0].tolist() == [3, 0, 1, 2]
