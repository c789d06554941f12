"""What the service counts, in the format of Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest
from starlette.types import Scope

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60)


class Metrics:
    """Requests by route and status, their seconds, sizes of batches, and the process."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._requests = Counter(
            "manymatch_requests", "Answered requests", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "manymatch_request_seconds",
            "Seconds until the whole answer is sent",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.batches = Histogram(
            "manymatch_batch_size",
            "Requests that are answered together",
            ["index"],
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=registry,
        )
        self.ready = Gauge(
            "manymatch_index_ready", "1 if the index answers", ["index"], registry=registry
        )

    def seen(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request. Unknown paths count as one route, so that there are few names."""
        route = getattr(scope.get("route"), "path", "other")
        self._requests.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All numbers in Prometheus' text format."""
        return generate_latest(self._registry)
