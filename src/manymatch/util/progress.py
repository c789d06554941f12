"""Progress of long work: a bar on a terminal, else a line every ten seconds."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import track as rich_track

from manymatch.util.errors import one_line

Item = TypeVar("Item")
_SECONDS_BETWEEN_LINES = 10.0


def track(
    items: Iterable[Item],
    description: str,
    total: int | None = None,
    *,
    quiet: bool = False,
    passing: bool = False,
) -> Iterator[Item]:
    """Yield `items` and report the progress on standard error (`total` items, if known).

    A `quiet` step is a part of other work: nothing is said unless the step takes ten seconds, and
    there is no bar, because other bars may be on the terminal. The bar of a `passing` step
    disappears at the end, and no line says that the step is done. Nothing is said of a step without
    a description.
    """
    if not description:
        yield from items
        return
    console = Console(stderr=True)
    if console.is_terminal and not quiet:
        shown = escape(one_line(description))
        yield from rich_track(items, shown, total=total, console=console, transient=passing)
        return
    lines = Lines(description, total)
    for item in items:
        yield item
        lines.advance()
    if not quiet and not passing:
        say(f"{description}: {lines.count} done in {lines.seconds:.1f} s")


@contextlib.contextmanager
def working(description: str, state: Callable[[], str] = str) -> Iterator[None]:
    """Say after ten seconds, then at most every minute, that a step that cannot be counted goes
    on, and what `state` tells of the step. While a thread is in a step inside another one, only the
    inner step is named."""
    ended, lines, steps = threading.Event(), Lines(description), _here.steps
    sys.stderr.write("")  # a command that watches this stream has ended its loading
    steps.append(lines)

    def report() -> None:
        pause = _SECONDS_BETWEEN_LINES
        while not ended.wait(pause):
            if steps[-1:] == [lines]:
                say("; ".join(filter(None, [f"{description}: {lines.seconds:.0f} s", state()])))
            pause = min(2 * pause, 6 * _SECONDS_BETWEEN_LINES)

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        steps.remove(lines)


class _Here(threading.local):
    """The steps that cannot be counted and that a thread is in, the inner one last."""

    def __init__(self) -> None:
        self.steps: list[Lines] = []


_here = _Here()


class Lines:
    """Prints the items done, the items per second and the time left every ten seconds."""

    def __init__(self, description: str, total: int | None = None) -> None:
        self._description, self._total, self.count = description, total, 0
        self._started = self._last = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def advance(self) -> None:
        self.count += 1
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            rate = self.count / self.seconds
            state = f"{self.count} ({rate:.1f}/s)"
            if self._total is not None:
                left = max(0, self._total - self.count) / rate
                rest = f"{left:.0f} s" if left < 120 else f"{left / 60:.0f} min"
                state = f"{self.count}/{self._total} ({rate:.1f}/s, about {rest} left)"
            say(f"{self._description}: {state}")


def say(line: str) -> None:
    """Print one line for the user on standard error; see `one_line`."""
    print(one_line(line), file=sys.stderr, flush=True)
