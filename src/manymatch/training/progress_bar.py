"""The progress bar of an epoch and of its validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import track

from manymatch.util.progress import Lines

Item = TypeVar("Item")


def tracked(items: Iterable[Item], title: str, total: int) -> Iterator[Item]:
    """Yield `items` and show a bar that disappears at the end, or without a terminal a line every
    ten seconds. Nothing is shown without a title."""
    console = Console(stderr=True)
    if not title:
        yield from items
    elif console.is_terminal:
        yield from track(items, title, total=total, console=console, transient=True)
    else:
        lines = Lines(f"{title} (batches)", total)
        for item in items:
            yield item
            lines.advance()
