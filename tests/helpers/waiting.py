"""Waiting for a search service in a test."""

import time


def ready(client):
    """Wait until no index loads."""
    while client.get("/health").json()["status"] == "loading":
        time.sleep(0.05)
