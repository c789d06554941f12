"""Requests that wait together are answered together."""

import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

LARGEST = 64
"""The most requests of a batch."""
MOST_WAITING = 512
"""The maximum length of the queue. Further requests are refused."""
Work = tuple[Any, Any, "Future[Any]"]


class Batcher:
    """Collects requests while a thread answers earlier ones; the thread then takes all that wait.

    A request that comes alone never waits for others. Requests of one batch have the same kind.

    Args:
        answer: answers several requests of one kind, in their order.
        seen: called with the size of each batch.
    """

    def __init__(
        self,
        answer: Callable[[Any, Sequence[Any]], Sequence[Any]],
        seen: Callable[[int], object] = lambda size: None,
    ) -> None:
        self._answer, self._seen = answer, seen
        self._waiting: queue.Queue[Work] = queue.Queue(MOST_WAITING)
        threading.Thread(target=self._run, daemon=True).start()

    def submit(self, kind: Any, request: Any) -> Future[Any]:
        """Let `request` wait for its answer. A request that is cancelled in time costs nothing.

        Raises:
            queue.Full: too many requests wait already.
        """
        future: Future[Any] = Future()
        self._waiting.put_nowait((kind, request, future))
        return future

    def _run(self) -> None:
        while True:
            work = [self._waiting.get()]
            while len(work) < LARGEST and not self._waiting.empty():
                work.append(self._waiting.get())
            groups: dict[Any, list[Work]] = defaultdict(list)
            for one in work:
                if one[2].set_running_or_notify_cancel():
                    groups[one[0]].append(one)
            for kind, group in groups.items():
                self._seen(len(group))
                self._settle(kind, group)

    def _settle(self, kind: Any, group: list[Work]) -> None:
        try:
            answers = self._answer(kind, [request for _, request, _ in group])
        except Exception as error:
            if len(group) == 1:
                group[0][2].set_exception(error)
                return
            # The fault of one request must not reach the others.
            for one in group:
                self._settle(kind, [one])
        else:
            for (_, _, future), answer in zip(group, answers, strict=True):
                future.set_result(answer)
