"""What can go wrong between a server and a file, and how slow a server may be."""

from __future__ import annotations

WINDOW = 20.0
"""Seconds of waiting after which the speed is measured."""
LEAST_SPEED = 1024
"""Bytes per second."""


class Passing(Exception):
    """A fault that may be gone at the next attempt."""


class Unreachable(Passing):
    """The host cannot be reached: its name is unknown, or no network leads to it."""


class Final(Exception):
    """A fault that this mirror will have again."""


class Stale(Exception):
    """The present bytes do not belong to the file that the server has now."""


class NoParts(Exception):
    """The server announced that it serves parts of files, but does not."""


class Complete(Exception):
    """The server has no more bytes than the present ones."""


class Pace:
    """The speed of a server, over windows of `WINDOW` seconds."""

    def __init__(self) -> None:
        self._bytes, self._seconds = 0, 0.0

    def add(self, count: int, seconds: float) -> None:
        """Count bytes and the time that they took.

        Raises:
            Passing: the server is slower than `LEAST_SPEED`.
        """
        self._bytes, self._seconds = self._bytes + count, self._seconds + seconds
        if self._seconds < WINDOW:
            return
        if self._bytes < LEAST_SPEED * self._seconds:
            raise Passing(
                f"only {self._bytes:,} bytes in {self._seconds:.0f} s, slower than "
                f"{LEAST_SPEED:,} bytes per second"
            )
        self._bytes, self._seconds = 0, 0.0
