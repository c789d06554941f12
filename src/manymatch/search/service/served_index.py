"""An index that is loaded in a thread and then answers requests, which are collected in batches."""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fastapi import HTTPException
from PIL import Image

from manymatch.config.names import checked_name
from manymatch.model.picture_bytes import decoded
from manymatch.search.service.batcher import Batcher
from manymatch.util.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    ManyMatchError,
    first_line,
)
from manymatch.util.progress import say
from manymatch.util.regular_file import resolved

if TYPE_CHECKING:
    from manymatch.search.index.database import Version
    from manymatch.search.index.index import Index
    from manymatch.util.seal import Seal

_SECONDS = 60.0
"""An answer that takes longer is given up."""
_BETWEEN_LOOKS = 2.0
"""Seconds between two looks at the folder of an index."""


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


class ServedIndex:
    """An index under its `name` in requests. A thread follows the `folder` of the index, or the
    table at this URL.

    Attributes:
        status: `loading`, then `ready` or `failed`; `fault` says why.
        facts: what is known about the index.
        batch_seen: called with the size of each batch.
    """

    def __init__(self, name: str, folder: str | Path, model: str | None = None) -> None:
        self.name, self.folder, self._model = name, folder, model
        self._is_far = "://" in str(folder)  # so that nobody reads the whole index for a check
        self.status: Literal["loading", "ready", "failed"] = "loading"
        self.fault: str | None = None
        self.facts: dict[str, Any] = {}
        self.batch_seen: Callable[[int], object] = lambda size: None
        self._index: Index | None = None
        self._following, self._ended, self._said = threading.RLock(), threading.Event(), ""
        self._refused: Seal | Version | Literal["nothing"] | None = "nothing"
        """The state of the index that could not be used, while no other one answers."""
        self._batcher = Batcher(self._answers, lambda size: self.batch_seen(size))

    @classmethod
    def from_folder(cls, folder: str | Path, model: str | None = None) -> "ServedIndex":
        """The index in `folder`, or the table at a URL, under its name without `.index`. Without a
        `model` (a folder or a name on the hub), the model is the one that the index names.

        Raises:
            ConfigError: the folder is missing, or the name is not a name.
        """
        url = "://" in str(folder)
        if not url and not Path(folder).is_dir():
            raise ConfigError(f"{folder}: no such index. Make it with 'manymatch index'.")
        own = (Path(folder) if url else resolved(Path(folder))).name.removesuffix(".index")
        return cls(checked_name(own, "index"), folder, model)

    def load(self) -> threading.Thread:
        """Make the index ready in a thread."""
        thread = threading.Thread(target=self._load, daemon=True)
        thread.start()
        return thread

    def state(self) -> dict[str, Any]:
        """Name, status, and what is known about the index."""
        fault = {"error": self.fault} if self.fault else {}
        return {"name": self.name, "status": self.status, **fault, **self.facts}

    def item(self, item: str) -> Any:
        """The facts of an item.

        Raises:
            HTTPException: 404, the index has no such item; 503, the index is not ready.
        """
        with self._known(item, "a fact cannot be read") as index:
            return index.item(item)

    def examples(self, k: int) -> list[dict[str, str]]:
        """The ids and paths of at most `k` items at equal distances; 503 as for `item`."""
        items = self.ready_index().stored.items.select(["id", "path"])
        count = min(k, len(items))
        rows = [len(items) * number // count for number in range(count)]
        examples: list[dict[str, str]] = items.take(rows).to_pylist()
        return examples

    def picture(self, item: str) -> bytes:
        """The file of an item; raises the same as `item`."""
        moved = "Its file may have been moved, changed or removed since it was indexed"
        with self._known(item, f"no picture can be read. {moved}") as index:
            return index.picture(item)

    @contextmanager
    def _known(self, item: str, fault: str) -> "Iterator[Index]":
        """The index, which has the item. An error of the block, which may name a path of this
        machine, is answered with 404 and `fault`; the terminal has the error."""
        index = self.ready_index()
        if item not in index:
            raise HTTPException(404, f"index '{self.name}': no item '{item}'")
        try:
            yield index
        except (ManyMatchError, OSError) as error:
            say(str(error))
            raise HTTPException(
                404, f"item '{item}': {fault}; the terminal of the service says more"
            ) from None

    def ready_index(self) -> "Index":
        """The index. The thread that loads the index may take it back at any time.

        Raises:
            HTTPException: 503, the index is not ready.
        """
        index = self._index
        if index is None:
            waits = "loads its model; ask again in a few seconds"
            raise HTTPException(503, f"index '{self.name}': {self.fault or waits}")
        return index

    async def answer(self, kind: Kind, request: Any) -> Any:
        """The answer of a request.

        Raises:
            HTTPException: 503, the index is not ready or too many requests wait; 504, no answer
                came in time.
            ManyMatchError: the request is faulty.
        """
        self.ready_index()
        try:
            future = self._batcher.submit(kind, request)
            return await asyncio.wait_for(asyncio.wrap_future(future), _SECONDS)
        except queue.Full:
            raise HTTPException(503, "too many requests wait; ask again later") from None
        except TimeoutError:
            raise HTTPException(504, f"no answer within {_SECONDS:.0f} s") from None

    def _answers(self, kind: Kind, requests: Sequence[Any]) -> Sequence[Any]:
        index = self.ready_index()
        if kind.query == "explanation":
            return [self._explained(index, *request) for request in requests]
        settings: dict[str, Any] = {"where": kind.where, "least": kind.least}
        if kind.query == "item":
            return [index.similar(item, kind.k, **settings) for item in requests]
        return index.search_all(list(requests), kind.k, **settings)

    def _explained(self, index: "Index", item: str, query: str | Image.Image) -> Any:
        if index.manifest.side == "texts" and not isinstance(query, str):
            return index.model.explain(query, self.item(item).facts["text"])
        if index.manifest.side == "images" and isinstance(query, str):
            return index.model.explain(decoded(self.picture(item)), query)
        raise DataError("two pictures, or two texts, have no explanation: send one of each")

    def _load(self) -> None:
        self.follow()
        threading.Thread(target=self._follow, daemon=True).start()

    def _seal(self) -> "Seal | Version | None":
        """The state of the index; None: there is none that can be read."""
        from manymatch.search.index.table import state_of

        with suppress(ManyMatchError, OSError):
            return state_of(self.folder)
        return None

    def _take(self, index: "Index") -> None:
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
            self.follow()

    def follow(self) -> None:
        """Take over the index that lies in the folder now, if it is another one. The former index
        answers until the new one is ready, and goes on if the new one cannot be used."""
        from manymatch.search.index.index import Index  # torch takes seconds to import

        with self._following:
            former, seal = self._index, self._seal()
            if seal == (former.seal if former else self._refused):
                return
            self._refused = seal
            try:
                try:
                    index = Index.open(self.folder, former.model if former else self._model)
                except CheckpointError:  # another model made the new index
                    index = Index.open(self.folder, self._model)
                said = "is ready" if self.status == "loading" else "was replaced"
                if former and not self._is_far:
                    index.check()  # reads all embeddings
                self._take(index)
                self.fault = None
                self._tell(f"index '{self.name}' {said}: {len(index):,} items")
                if not former and not self._is_far:  # nobody else answers meanwhile
                    index.check()
            except Exception as error:  # such as a GPU without memory for two indexes
                if former:
                    # The folder is missing for a moment while it is replaced: the fault may pass.
                    self._tell(f"index '{self.name}' goes on as it was: {first_line(error)}")
                elif self._seal() != seal:  # the index was replaced meanwhile
                    self.follow()
                else:
                    # The terminal has the details, which name paths.
                    self.fault = "cannot be used; the terminal of the service says why"
                    self.status, self._index, self.facts = "failed", None, {}
                    self._tell(f"error: index '{self.name}': {first_line(error)}")

    def _tell(self, line: str) -> None:
        """Say a line once, however often it is true."""
        if line != self._said:
            self._said = line
            say(line)

    def end(self) -> None:
        """Follow the folder no longer."""
        self._ended.set()
