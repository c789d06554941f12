"""Each client has its own number of requests a second."""

from __future__ import annotations

import pytest

from manymatch.search.service import rate
from manymatch.search.service.rate import Rate


def test_a_client_waits_after_too_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(rate.time, "monotonic", lambda: now)
    limit = Rate(10)
    assert [limit.admits("a") for _ in range(21)] == [True] * 20 + [False]
    assert limit.admits("b")
    now = 0.1
    assert [limit.admits("a") for _ in range(2)] == [True, False]
    now = 100.0
    assert sum(limit.admits("a") for _ in range(30)) == 20


def test_the_oldest_clients_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate, "_MOST_CLIENTS", 2)
    limit = Rate(1)
    for client in "abc":
        assert [limit.admits(client) for _ in range(3)] == [True, True, False]
    assert limit.admits("a") and not limit.admits("c")
