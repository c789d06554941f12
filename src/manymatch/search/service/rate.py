"""How many requests a second each client may send."""

from __future__ import annotations

import time
from collections import OrderedDict

_MOST_CLIENTS = 10_000


class Rate:
    """Admits `rate` requests of each client, and twice as many after a pause."""

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, 2 * rate
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admits(self, client: str) -> bool:
        """Count one request of `client`; False if the client sent too many."""
        now = time.monotonic()
        left, before = self._left.pop(client, (self._most, now))
        left = min(self._most, left + (now - before) * self._rate)
        admitted = left >= 1
        self._left[client] = (left - 1 if admitted else left, now)
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return admitted
