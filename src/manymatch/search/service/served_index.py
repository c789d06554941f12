"""An index that is loaded in a thread and then answers requests, which are collected in batches."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import HTTPException
from PIL import Image

from manymatch.config.names import checked_name
from manymatch.model.picture_bytes import decoded
from manymatch.search.service.any_index import AnyIndex, Kind
from manymatch.util.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    ManyMatchError,
    first_line,
)
from manymatch.util.progress import say

if TYPE_CHECKING:
    from manymatch.search.index.index import Index
    from manymatch.util.seal import Seal

_SECONDS = 60.0
"""An answer that takes longer is given up."""
_BETWEEN_LOOKS = 2.0
"""Seconds between two looks at the folder of an index."""
LARGEST = 64
"""The most requests of a batch."""
MOST_WAITING = 512
"""The maximum length of the queue. Further requests are refused."""


class ServedIndex(AnyIndex):
    """An index of this machine. A thread follows the folder of the index.

    Args:
        name: the name in requests.
        folder: the folder of the index.
        model: the folder of the model or its name on the hub; None: as the index says.
        is_shard: whether the index must keep its model, because other shards have it.

    Attributes:
        batch_seen: called with the size of each batch.
    """

    waits = "loads its model; ask again in a few seconds"

    def __init__(
        self, name: str, folder: Path, model: str | None = None, is_shard: bool = False
    ) -> None:
        super().__init__(name)
        self._is_shard = is_shard
        self.folder, self._model = folder, model
        self.batch_seen: Callable[[int], object] = lambda size: None
        self._index: Index | None = None
        self._following, self._ended, self._said = threading.Lock(), threading.Event(), ""
        self._refused: Seal | None = None
        """The seal of the index that could not be used, while no other one answers."""
        self._batcher = Batcher(self._answers, lambda size: self.batch_seen(size))

    @classmethod
    def from_folder(
        cls, folder: Path, name: str | None = None, model: str | None = None
    ) -> ServedIndex:
        """The index in `folder`, by default under the folder's name without `.index`.

        Raises:
            ConfigError: the folder is missing, or the name is not a name.
        """
        if not folder.is_dir():
            raise ConfigError(f"{folder}: no such index. Make it with 'manymatch index'.")
        own = folder.resolve().name.removesuffix(".index")
        return cls(checked_name(name or own, "index"), folder, model, is_shard=name is not None)

    def item(self, item: str) -> Any:
        with self._known(item, "a fact cannot be read") as index:
            return index.item(item)

    def picture(self, item: str) -> bytes:
        moved = "Its file may have been moved, changed or removed since it was indexed"
        with self._known(item, f"no picture can be read. {moved}") as index:
            return index.picture(item)

    @contextmanager
    def _known(self, item: str, fault: str) -> Iterator[Index]:
        """The index, which has the item. An error of the block, which may name a path of this
        machine, is answered with 404 and `fault`; the terminal has the error."""
        index = self._ready_index()
        if item not in index:
            raise HTTPException(404, f"index '{self.name}': no item '{item}'")
        try:
            yield index
        except (ManyMatchError, OSError) as error:
            say(str(error))
            raise HTTPException(
                404, f"item '{item}': {fault}; the terminal of the service says more"
            ) from None

    def _ready_index(self) -> Index:
        """The index. The thread that loads the index may take it back at any time."""
        index = self._index
        if index is None:
            raise HTTPException(503, f"index '{self.name}': {self.fault or self.waits}")
        return index

    async def answer(self, kind: Kind, request: Any) -> Any:
        self.check_ready()
        try:
            future = self._batcher.submit(kind, request)
            return await asyncio.wait_for(asyncio.wrap_future(future), _SECONDS)
        except queue.Full:
            raise HTTPException(503, "too many requests wait; ask again later") from None
        except TimeoutError:
            raise HTTPException(504, f"no answer within {_SECONDS:.0f} s") from None

    def _answers(self, kind: Kind, requests: Sequence[Any]) -> Sequence[Any]:
        index = self._ready_index()
        if kind.query == "explanation":
            return [self._explained(index, *request) for request in requests]
        settings: dict[str, Any] = {"where": kind.where, "least": kind.least}
        if kind.query == "item":
            return [index.similar(item, kind.k, **settings) for item in requests]
        return index.search_all(list(requests), kind.k, **settings)

    def _explained(self, index: Index, item: str, query: str | Image.Image) -> Any:
        if index.manifest.side == "texts" and not isinstance(query, str):
            return index.model.explain(query, self.item(item).facts["text"])
        if index.manifest.side == "images" and isinstance(query, str):
            return index.model.explain(decoded(self.picture(item)), query)
        raise DataError("two pictures, or two texts, have no explanation: send one of each")

    def _load(self) -> None:
        from manymatch.search.index.index import Index  # torch takes seconds to import

        before = self._seal()
        try:
            index = Index.open(self.folder, self._model)
            self._take(index)
            say(f"index '{self.name}' is ready")
            with self._following:
                index.check()  # reads all embeddings, which takes a while for a large index
        except (ManyMatchError, OSError) as error:
            if self._seal() != before:  # the index was replaced meanwhile
                self._load()
                return
            # The terminal has the details, which name paths.
            self.fault = "cannot be used; the terminal of the service says why"
            self.status, self._index, self.facts = "failed", None, {}
            self._refused = before
            say(f"error: index '{self.name}': {error}")
        threading.Thread(target=self._follow, daemon=True).start()

    def _seal(self) -> Seal | None:
        """The seal of the index in the folder; None: there is none that can be read."""
        from manymatch.search.index.manifest import seal_of

        with suppress(ManyMatchError, OSError):
            return seal_of(self.folder)
        return None

    def _take(self, index: Index) -> None:
        """Answer by `index` from now on."""
        # The first queries load model, parser and image features, so nobody waits for them.
        index.model.parse(["a photograph"])
        if index.manifest.side == "images":
            index.search("a photograph", 1)
        # A model on features that others published takes no pictures, but texts.
        with suppress(ConfigError, CheckpointError):
            index.search(Image.new("RGB", (64, 64)), 1)
        manifest = index.manifest
        self.facts = {
            "items": manifest.items,
            "side": manifest.side,
            "method": manifest.identity["method"],
            "model": manifest.identity,
        }
        self._index, self.status = index, "ready"

    def _follow(self) -> None:
        while not self._ended.wait(_BETWEEN_LOOKS):
            try:
                self.follow()
            except Exception as error:  # such as a GPU without memory for two indexes
                self._tell(f"index '{self.name}' goes on as it was: {first_line(error)}")

    def follow(self) -> None:
        """Take over the index that lies in the folder now, if it is another one. The former index
        answers until the new one is ready, and goes on if the new one cannot be used."""
        from manymatch.search.index.index import Index

        with self._following:
            former, seal = self._index, self._seal()
            if seal == (former.seal if former else self._refused):
                return
            self._refused = seal
            try:
                try:
                    index = Index.open(self.folder, former.model if former else self._model)
                except CheckpointError:  # another model made the new index
                    if self._is_shard:
                        raise
                    index = Index.open(self.folder, self._model)
                index.check()
                self._take(index)
                self.fault = None
                self._tell(f"index '{self.name}' was replaced: {len(index):,} items")
            except (ManyMatchError, OSError) as error:
                # The folder is missing for a moment while it is replaced, so the fault may pass.
                state = "goes on as it was" if former else "cannot be used"
                self._tell(f"index '{self.name}' {state}: {error}")

    def _tell(self, line: str) -> None:
        """Say a line once, however often it is true."""
        if line != self._said:
            self._said = line
            say(line)

    def end(self) -> None:
        """Follow the folder no longer."""
        self._ended.set()


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
