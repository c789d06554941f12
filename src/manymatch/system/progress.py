"""Progress of long work: a bar on a terminal, else a line every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import track as rich_track

from manymatch.system.errors import one_line, printable

Item = TypeVar("Item")
_SECONDS_BETWEEN_LINES = 10.0


def track(items: Iterable[Item], description: str, total: int | None = None) -> Iterator[Item]:
    """Yield `items` and report the progress on standard error (`total` items, if known)."""
    console = Console(stderr=True)
    if console.is_terminal:
        shown = escape(one_line(description))
        yield from rich_track(items, shown, total=total, console=console)
    else:
        yield from _lines(items, description, total)


def _lines(items: Iterable[Item], description: str, total: int | None) -> Iterator[Item]:
    started = last = time.monotonic()
    of_total = f"/{total}" if total is not None else ""
    count = 0
    for count, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES:
            last = now
            say(f"{description}: {count}{of_total} ({count / (now - started):.1f}/s)")
    say(f"{description}: {count} done in {time.monotonic() - started:.1f} s")


def say(line: str) -> None:
    """Print one line for the user on standard error; see `one_line`."""
    print(one_line(line), file=sys.stderr, flush=True)


def show(table: str) -> None:
    """Print the lines of a result on standard output; see `printable`."""
    print(*map(printable, table.split("\n")), sep="\n", flush=True)
