"""Read-ahead: threads that prepare the next items while the caller works on the present one."""

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
_END = object()


def map_ahead(
    work: Callable[[Item], Result], items: Iterable[Item], depth: int, threads: int = 1
) -> Generator[Result, None, None]:
    """`work(item)` for every item, in the order of the items.

    The threads compute up to `depth` results before the caller asks for them. An exception of
    `work` is raised where its result would have been. The threads end with the generator.
    """
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > depth:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def ahead(items: Iterable[Item], depth: int = 4) -> Generator[Item, None, None]:
    """The `items`. One thread takes up to `depth` of them before the caller asks for them."""
    iterator = iter(items)

    def take(_: None) -> Any:
        return next(iterator, _END)

    with contextlib.closing(map_ahead(take, itertools.repeat(None), depth)) as results:
        yield from itertools.takewhile(lambda item: item is not _END, results)
