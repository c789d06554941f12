"""Requests that wait together are answered together, and a faulty one fails alone."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence

import pytest

from manymatch.search.service import batcher
from manymatch.search.service.batcher import LARGEST, Batcher
from manymatch.util.errors import DataError


class Held:
    """An answering function that waits until it is released, and notes the batches."""

    def __init__(self) -> None:
        self.released, self.batches = threading.Event(), list[tuple[str, list[int]]]()

    def __call__(self, kind: str, requests: Sequence[int]) -> list[int]:
        self.released.wait(10)
        self.batches.append((kind, list(requests)))
        if -1 in requests:
            raise DataError("a faulty request")
        if -2 in requests:
            raise ZeroDivisionError
        return [10 * request for request in requests]


@pytest.fixture
def held() -> Held:
    return Held()


def begun(held: Held) -> Batcher:
    """A batcher whose thread is busy with a first request."""
    made = Batcher(held)
    first = made.submit("a", 0)
    while not first.running():
        pass
    return made


def test_requests_of_one_kind_share_a_batch(held: Held) -> None:
    made = begun(held)
    waiting = [made.submit("ab"[i % 2], i) for i in range(1, 2 * LARGEST)]
    held.released.set()
    assert [future.result(10) for future in waiting] == [10 * i for i in range(1, 2 * LARGEST)]
    assert {len(requests) for _, requests in held.batches[1:3]} == {LARGEST // 2}


def test_a_faulty_request_fails_alone(held: Held) -> None:
    made = begun(held)
    good, faulty, other = made.submit("a", 1), made.submit("a", -1), made.submit("a", 2)
    defect, beside = made.submit("b", -2), made.submit("b", 4)
    held.released.set()
    assert (good.result(10), other.result(10)) == (10, 20)
    with pytest.raises(DataError):
        faulty.result(10)
    with pytest.raises(ZeroDivisionError):
        defect.result(10)
    assert beside.result(10) == 40
    assert made.submit("a", 3).result(10) == 30


def test_a_cancelled_request_costs_nothing(held: Held) -> None:
    made = begun(held)
    assert made.submit("a", 1).cancel()
    held.released.set()
    assert made.submit("a", 2).result(10) == 20
    assert 1 not in [request for _, requests in held.batches for request in requests]


def test_too_many_requests_are_refused(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batcher, "MOST_WAITING", 3)
    made = begun(held)
    for number in range(3):
        made.submit("a", number)
    with pytest.raises(queue.Full):
        made.submit("a", 3)
    held.released.set()
