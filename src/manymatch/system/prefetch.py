"""Work that runs ahead of who waits for its results."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

Item = TypeVar("Item")
_END = object()


def ahead(items: Iterable[Item], depth: int = 4) -> Generator[Item, None, None]:
    """`items`, of which a thread prepares up to `depth` before they are asked for.

    An exception of `items` comes where its item would have; the thread ends with the iterator.
    """
    waiting: queue.Queue[Any] = queue.Queue(depth)
    stop = threading.Event()
    thread = threading.Thread(target=_fill, args=(items, waiting, stop), daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            yield item
    finally:
        stop.set()
        thread.join()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _fill(items: Iterable[Any], waiting: queue.Queue[Any], stop: threading.Event) -> None:
    try:
        for item in items:
            if not _put(item, waiting, stop):
                return
        _put(_END, waiting, stop)
    except BaseException as error:
        _put(_Failure(error), waiting, stop)


def _put(item: Any, waiting: queue.Queue[Any], stop: threading.Event) -> bool:
    """Whether there was room for `item` before the reader went away."""
    while not stop.is_set():
        try:
            waiting.put(item, timeout=0.1)
        except queue.Full:
            continue
        return True
    return False
