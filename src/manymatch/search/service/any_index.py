"""What every index of the service is: a name, a status, and answers to requests."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import HTTPException


@dataclass(frozen=True)
class Kind:
    """What requests ask for, and with which settings; requests of one kind form batches.

    A request is a text, a picture, or the id of an item whose best items are searched. A request
    for an explanation is the id of an item and a query of the other side.
    """

    query: Literal["text", "picture", "item", "explanation"]
    k: int = 20
    where: str | None = None
    least: float | None = None


class AnyIndex(ABC):
    """An index under a name in requests; the status is `loading`, then `ready` or `failed`."""

    waits: str
    """The text for a client while the index is not ready."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.status: Literal["loading", "ready", "failed"] = "loading"
        self.fault: str | None = None
        self.facts: dict[str, Any] = {}

    def load(self) -> threading.Thread:
        """Make the index ready in a thread."""
        thread = threading.Thread(target=self._load, daemon=True)
        thread.start()
        return thread

    def check_ready(self) -> None:
        """Raise an `HTTPException` 503 if the index is not ready."""
        if self.status != "ready":
            raise HTTPException(503, f"index '{self.name}': {self.fault or self.waits}")

    def state(self) -> dict[str, Any]:
        """Name, status, and what is known about the index."""
        fault = {"error": self.fault} if self.fault else {}
        return {"name": self.name, "status": self.status, **fault, **self.facts}

    @abstractmethod
    def item(self, item: str) -> Any:
        """The facts of an item.

        Raises:
            HTTPException: 404, the index has no such item; 503, the index is not ready.
        """

    @abstractmethod
    def picture(self, item: str) -> bytes:
        """The file of an item; raises the same as `item`."""

    @abstractmethod
    async def answer(self, kind: Kind, request: Any) -> Any:
        """The answer of a request.

        Raises:
            HTTPException: 503, the index is not ready or too many requests wait; 504, no answer
                came in time.
            ManyMatchError: the request is faulty.
        """

    @abstractmethod
    def _load(self) -> None:
        """Make the index ready, or set `status` and `fault`."""
