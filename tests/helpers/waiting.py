"""Waiting for a search service in a test."""

from __future__ import annotations

import time

import httpx


def ready(client: httpx.Client) -> None:
    """Wait until no index loads."""
    while client.get("/health").json()["status"] == "loading":
        time.sleep(0.05)
