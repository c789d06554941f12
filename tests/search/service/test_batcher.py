"""Requests that wait together are answered together, and a faulty one fails alone."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future

import pytest

from manymatch.search.service import served_index
from manymatch.search.service.served_index import LARGEST, Batcher
from manymatch.util.errors import DataError


class Held:
    """A batcher whose thread is busy with a first request; answers wait for `release`."""

    def __init__(self) -> None:
        self.released, self.batches = threading.Event(), list[tuple[str, list[int]]]()
        self.batcher = Batcher(self.answer)
        first = self.submit("a", 0)
        while not first.running():
            pass

    def submit(self, kind: str, request: int) -> Future[int]:
        return self.batcher.submit(kind, request)

    def answer(self, kind: str, requests: Sequence[int]) -> list[int]:
        self.released.wait(10)
        self.batches.append((kind, list(requests)))
        if -1 in requests:
            raise DataError("a faulty request")
        if -2 in requests:
            raise ZeroDivisionError
        return [10 * request for request in requests]


def test_requests_of_one_kind_share_a_batch() -> None:
    held = Held()
    waiting = [held.submit("ab"[i % 2], i) for i in range(1, 2 * LARGEST)]
    held.released.set()
    assert [future.result(10) for future in waiting] == [10 * i for i in range(1, 2 * LARGEST)]
    assert {len(requests) for _, requests in held.batches[1:3]} == {LARGEST // 2}


def test_a_faulty_request_fails_alone_and_a_cancelled_one_costs_nothing() -> None:
    held = Held()
    good, faulty, other = held.submit("a", 1), held.submit("a", -1), held.submit("a", 2)
    defect, beside = held.submit("b", -2), held.submit("b", 4)
    assert held.submit("a", 7).cancel()
    held.released.set()
    assert (good.result(10), other.result(10), beside.result(10)) == (10, 20, 40)
    for future, error in ((faulty, DataError), (defect, ZeroDivisionError)):
        with pytest.raises(error):
            future.result(10)
    assert held.submit("a", 3).result(10) == 30
    assert 7 not in [request for _, requests in held.batches for request in requests]


def test_too_many_requests_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_index, "MOST_WAITING", 3)
    held = Held()
    for number in range(3):
        held.submit("a", number)
    with pytest.raises(queue.Full):
        held.submit("a", 3)
    held.released.set()
