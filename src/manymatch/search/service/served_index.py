"""An index that is loaded in a thread and then answers requests."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fastapi import HTTPException
from PIL import Image

from manymatch.config.names import checked_name
from manymatch.model.picture_bytes import decoded
from manymatch.search.service.batcher import Batcher
from manymatch.util.errors import CheckpointError, ConfigError, DataError, ManyMatchError
from manymatch.util.progress import say

if TYPE_CHECKING:
    from manymatch.search.index.index import Index

_SECONDS = 60.0
"""An answer that takes longer is given up."""


@dataclass(frozen=True)
class Search:
    """Requests for the best items of a text, a picture or an item, with the same settings.

    Requests of one batch are encoded together, so texts and pictures are two kinds.
    """

    query: Literal["text", "picture", "item"]
    k: int
    where: str | None = None
    least: float | None = None

    def answers(self, index: Index, queries: Sequence[Any]) -> Sequence[Any]:
        settings: dict[str, Any] = {"where": self.where, "least": self.least}
        if self.query == "item":
            return [index.similar(query, self.k, **settings) for query in queries]
        return index.search_all(list(queries), self.k, **settings)


@dataclass(frozen=True)
class Explain:
    """Requests for the explanation of an item and a query of the other side."""

    def answers(
        self, index: Index, pairs: Sequence[tuple[str, str | Image.Image]]
    ) -> Sequence[Any]:
        return [self._answer(index, item, query) for item, query in pairs]

    def _answer(self, index: Index, item: str, query: str | Image.Image) -> Any:
        if index.manifest.side == "texts" and not isinstance(query, str):
            return index.model.explain(query, _item(index, item).facts["text"])
        if index.manifest.side == "images" and isinstance(query, str):
            return index.model.explain(decoded(_picture(index, item)), query)
        raise DataError("two pictures, or two texts, have no explanation: send one of each")


class ServedIndex:
    """An index under a name; the status is `loading`, then `ready` or `failed`.

    Args:
        name: the name in requests.
        folder: the folder of the index.
        model: the folder of the model or its name on the hub; None: as the index says.

    Attributes:
        batch_seen: called with the size of each batch.
    """

    def __init__(self, name: str, folder: Path, model: str | None = None) -> None:
        self.name, self.folder, self._model = name, folder, model
        self.batch_seen: Callable[[int], object] = lambda size: None
        self.status: Literal["loading", "ready", "failed"] = "loading"
        self.fault: str | None = None
        self._index: Index | None = None
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
        return cls(checked_name(name or own, "index"), folder, model)

    def load(self) -> threading.Thread:
        """Open the index and its model in a thread."""
        thread = threading.Thread(target=self._load, daemon=True)
        thread.start()
        return thread

    @property
    def index(self) -> Index:
        """The opened index.

        Raises:
            HTTPException: 503, the index is not ready.
        """
        if self._index is None:
            reason = self.fault or "loads its model; ask again in a few seconds"
            raise HTTPException(503, f"index '{self.name}': {reason}")
        return self._index

    def check_ready(self) -> None:
        """Raise the `HTTPException` 503 of `index` if the index is not ready."""
        assert self.index

    def state(self) -> dict[str, Any]:
        """Name, status, and what is known about the index."""
        facts: dict[str, Any] = {"name": self.name, "status": self.status}
        if self.fault:
            facts["error"] = self.fault
        if self._index:
            manifest = self._index.manifest
            facts |= {
                "items": manifest.items,
                "side": manifest.side,
                "method": manifest.identity["method"],
                "model": manifest.identity,
            }
        return facts

    def item(self, item: str) -> Any:
        """The facts of an item.

        Raises:
            HTTPException: 404, the index has no such item; 503, the index is not ready.
        """
        self._check_known(item)
        return _item(self.index, item)

    def picture(self, item: str) -> bytes:
        """The file of an item; raises the same as `item`."""
        self._check_known(item)
        return _picture(self.index, item)

    def _check_known(self, item: str) -> None:
        if item not in self.index:
            raise HTTPException(404, f"index '{self.name}': no item '{item}'")

    async def answer(self, kind: Search | Explain, request: Any) -> Any:
        """The answer of a request, which waits for its batch.

        Raises:
            HTTPException: 503, the index is not ready or too many requests wait; 504, no answer
                came in time.
            ManyMatchError: the request is faulty.
        """
        self.check_ready()
        try:
            future = self._batcher.submit(kind, request)
            return await asyncio.wait_for(asyncio.wrap_future(future), _SECONDS)
        except queue.Full:
            raise HTTPException(503, "too many requests wait; ask again later") from None
        except TimeoutError:
            raise HTTPException(504, f"no answer within {_SECONDS:.0f} s") from None

    def _answers(self, kind: Hashable, requests: Sequence[Any]) -> Sequence[Any]:
        assert isinstance(kind, Search | Explain)
        return kind.answers(self.index, requests)

    def _load(self) -> None:
        from manymatch.search.index.index import Index  # torch takes seconds to import

        try:
            index = Index.open(self.folder, self._model)
            _warm(index)
        except (ManyMatchError, OSError) as error:
            self._fail(error)
        else:
            self._index, self.status = index, "ready"
            say(f"index '{self.name}' is ready")
            self._check(index)

    def _check(self, index: Index) -> None:
        """Compare the embeddings with their hashes, which takes a while for a large index."""
        try:
            index.check()
        except (ManyMatchError, OSError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """End the service of this index. The terminal has the details, which name paths."""
        self._index, self.status = None, "failed"
        self.fault = "cannot be used; the terminal of the service says why"
        say(f"error: index '{self.name}': {error}")


def _picture(index: Index, item: str) -> bytes:
    """The picture of an item of the index. A client sees no path of the server.

    Raises:
        HTTPException: 404, the item has no picture that can be read.
    """
    with _hide_paths(
        f"item '{item}': no picture can be read. Its file may have been moved, changed or removed "
        "since it was indexed"
    ):
        return index.picture(item)


def _item(index: Index, item: str) -> Any:
    """The facts of an item of the index. A client sees no path of the server.

    Raises:
        HTTPException: 404, a fact of the item cannot be read.
    """
    with _hide_paths(f"item '{item}': a fact cannot be read"):
        return index.item(item)


@contextmanager
def _hide_paths(fault: str) -> Iterator[None]:
    """Answer an error, which may name a path, with 404 and `fault`. The terminal has the error."""
    try:
        yield
    except (ManyMatchError, OSError) as error:
        say(str(error))
        raise HTTPException(404, f"{fault}; the terminal of the service says more") from None


def _warm(index: Index) -> None:
    """The first queries load model, parser and image features, so nobody must wait for them."""
    index.model.parse(["a photograph"])
    if index.manifest.side == "images":
        index.search("a photograph", 1)
    # A model on features that others published takes no pictures, but texts.
    with suppress(ConfigError, CheckpointError):
        index.search(Image.new("RGB", (64, 64)), 1)
