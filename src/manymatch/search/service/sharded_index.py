"""An index in shards: a service on every host answers for its shard, and the answers are merged.

The best items of all shards are among the best items of each shard, so the merged answer is exact
if every shard's answer is exact.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
from fastapi import HTTPException
from PIL import Image
from starlette.concurrency import run_in_threadpool

from manymatch.config.names import checked_name
from manymatch.model.answer import Answer, Explanation, Item, Milliseconds, Result
from manymatch.search.service.served_index import Explain, Search
from manymatch.util.errors import ConfigError, first_line
from manymatch.util.progress import say

_BETWEEN = "."
"""Stands between the number of a shard and the id of its item."""
_ANSWER_SECONDS = 60.0
_SECONDS = 2.0
"""Between two questions whether a shard is ready."""


class ShardedIndex:
    """A `ServedIndex` whose items lie in shards on other hosts.

    Args:
        name: the name in requests.
        shards: a client for the service of each shard.
        asked: the name of the index on the shards; None: the first index of each.
    """

    def __init__(self, name: str, shards: Sequence[httpx.Client], asked: str | None = None) -> None:
        self.name = name
        self.status: Literal["loading", "ready", "failed"] = "loading"
        self.fault: str | None = None
        self._shards = shards
        self._index = {} if asked is None else {"index": asked}
        self._facts: dict[str, Any] = {}

    @classmethod
    def from_addresses(cls, addresses: Sequence[str]) -> ShardedIndex:
        """The index whose shards are served at `addresses`, such as http://10.0.0.7:8000/photos,
        where `photos` is the name of the index there. Without a name, the first index is asked.

        Raises:
            ConfigError: an address is not one of HTTP or is given twice, or the addresses have
                different names.
        """
        if len(set(addresses)) < len(addresses):
            raise ConfigError("the address of a shard is given twice. Give each shard once.")
        shards = [_shard(address) for address in addresses]
        names = {name for name, _ in shards}
        if len(names) > 1:
            raise ConfigError(
                f"the shards have different names: {', '.join(sorted(names))}. Serve each of them "
                "with the same --shard-of NAME."
            )
        (name,) = names
        clients = [client for _, client in shards]
        return cls(checked_name(name or "shards", "index"), clients, name or None)

    def load(self) -> threading.Thread:
        """Wait in a thread until all shards are ready."""
        thread = threading.Thread(target=self._load, daemon=True)
        thread.start()
        return thread

    def check_ready(self) -> None:
        """Raise an `HTTPException` 503 if the shards are not ready."""
        if self.status != "ready":
            raise HTTPException(503, f"index '{self.name}': {self.fault or 'waits for its shards'}")

    def state(self) -> dict[str, Any]:
        """Name, status, and what is known about the index."""
        fault = {"error": self.fault} if self.fault else {}
        return {"name": self.name, "status": self.status, **fault, **self._facts}

    def item(self, item: str) -> Item:
        """The facts of an item; raises the same as `ServedIndex.item`."""
        number, own = self._owner(item)
        facts = Item.model_validate(self._values(number, self._ask(number, "GET", f"/items/{own}")))
        return facts.model_copy(update={"id": item})

    def picture(self, item: str) -> bytes:
        """The file of an item; raises the same as `item`."""
        number, own = self._owner(item)
        return self._ask(number, "GET", f"/items/{own}/picture").content

    async def answer(self, kind: Search | Explain, request: Any) -> Answer | Explanation:
        """The answer of a request.

        Raises:
            HTTPException: a shard does not answer, or refuses the request.
        """
        self.check_ready()
        if isinstance(kind, Explain):
            return await run_in_threadpool(self._explanation, *request)
        ask: dict[str, Callable[[int, Search, Any], Answer]] = {
            "text": self._search_text,
            "picture": self._search_picture,
            "item": self._search_item,
        }
        answers = await asyncio.gather(
            *(
                run_in_threadpool(ask[kind.query], number, kind, request)
                for number in range(len(self._shards))
            )
        )
        return merged(answers, kind.k)

    def _explanation(self, item: str, query: str | Image.Image) -> Explanation:
        number, own = self._owner(item)
        if isinstance(query, str):
            body = self._index | {"item": own, "q": query}
            response = self._ask(number, "POST", "/explain", json=body)
        else:
            response = self._send(number, "/explain", {"item": own}, _png(query), "image/png")
        return Explanation.model_validate(self._values(number, response))

    def _search_text(self, number: int, kind: Search, text: str) -> Answer:
        body = self._index | _settings(kind) | {"q": text}
        return self._answer(number, self._ask(number, "POST", "/search", json=body))

    def _search_picture(self, number: int, kind: Search, picture: Image.Image) -> Answer:
        file = _png(picture)
        return self._answer(
            number, self._send(number, "/search", _settings(kind), file, "image/png")
        )

    def _search_item(self, number: int, kind: Search, item: str) -> Answer:
        """The shard of the item knows its embedding; other shards embed its text or picture. Their
        answer is exact only if the picture is the indexed file: shards give a thumbnail."""
        owner, own = self._owner(item)
        if number == owner:
            response = self._ask(number, "GET", f"/items/{own}/similar", params=_settings(kind))
            return self._answer(number, response)
        if self._facts["side"] == "texts":
            return self._search_text(number, kind, self.item(item).facts["text"])
        picture = self._ask(owner, "GET", f"/items/{own}/picture")
        file, media_type = picture.content, picture.headers["content-type"]
        response = self._send(number, "/search", _settings(kind), file, media_type)
        answer = self._answer(number, response)
        indexed = hashlib.sha256(file).hexdigest() == self.item(item).sha256
        return answer.model_copy(update={"exact": answer.exact and indexed})

    def _answer(self, number: int, response: httpx.Response) -> Answer:
        """The answer of a shard, whose items have the number of the shard before their ids."""
        answer = Answer.model_validate(self._values(number, response))
        results = [
            result.model_copy(update={"id": f"{number}{_BETWEEN}{result.id}"})
            for result in answer.results
        ]
        return answer.model_copy(update={"results": results})

    def _owner(self, item: str) -> tuple[int, str]:
        """The number of the shard that has an item, and the item's id there."""
        self.check_ready()
        number, _, own = item.partition(_BETWEEN)
        if not number.isdecimal() or int(number) >= len(self._shards) or not own.isalnum():
            raise HTTPException(404, f"index '{self.name}': no item '{item}'")
        return int(number), own

    def _send(
        self, number: int, path: str, settings: dict[str, Any], file: bytes, media_type: str
    ) -> httpx.Response:
        """The response of a shard to a picture."""
        headers = {"content-type": media_type}
        return self._ask(number, "POST", path, params=settings, content=file, headers=headers)

    def _values(self, number: int, response: httpx.Response) -> dict[str, Any]:
        """The JSON object of a shard's response."""
        try:
            values = response.json()
        except ValueError:
            values = None
        if isinstance(values, dict):
            return values
        raise HTTPException(
            503, f"{self._shards[number].base_url} is not a service of ManyMatch. Check the address"
        )

    def _ask(self, number: int, method: str, path: str, **options: Any) -> httpx.Response:
        """The response of a shard; a missing or a refusing shard is an `HTTPException`."""
        shard = self._shards[number]
        if "json" not in options:
            options["params"] = self._index | options.get("params", {})
        try:
            response = shard.request(method, path, **options)
        except httpx.HTTPError as error:
            raise HTTPException(
                503, f"shard {shard.base_url} does not answer ({first_line(error)})"
            ) from None
        if response.is_success:
            return response
        try:
            fault = str(response.json()["error"])
        except (ValueError, KeyError, TypeError):
            fault = f"status {response.status_code}"
        raise HTTPException(response.status_code, f"shard {shard.base_url}: {fault}")

    def _load(self) -> None:
        said = None
        while self.status == "loading":
            try:
                states = [self._state_of(number) for number in range(len(self._shards))]
            except HTTPException as error:
                self.fault = error.detail
            else:
                self._compare(states)
            if self.status == "loading":
                if self.fault != said:
                    said = self.fault
                    say(f"index '{self.name}' waits: {said}")
                time.sleep(_SECONDS)
        say(f"index '{self.name}': {self.fault or 'is ready'}")

    def _state_of(self, number: int) -> dict[str, Any]:
        states = self._values(number, self._ask(number, "GET", "/health")).get("indexes", [])
        name = self._index.get("index")
        for state in states:
            if name in (None, state["name"]):
                return state
        missing = f"no index '{name}'" if name else "no index"
        raise HTTPException(503, f"shard {self._shards[number].base_url} has {missing}")

    def _compare(self, states: Sequence[dict[str, Any]]) -> None:
        """The index is ready if all shards are ready and have the same model."""
        for shard, state in zip(self._shards, states, strict=True):
            if state["status"] != "ready":
                self.fault = f"shard {shard.base_url}: {state.get('error', state['status'])}"
                return
            for key in ("model", "side"):
                if state[key] != states[0][key]:
                    self.status = "failed"
                    self.fault = f"shard {shard.base_url} has another {key} than the first shard"
                    return
        self._facts = states[0] | {"items": sum(state["items"] for state in states)}
        del self._facts["name"], self._facts["status"]
        self.fault, self.status = None, "ready"


def _shard(address: str) -> tuple[str, httpx.Client]:
    """The name of the index in an address, and a client for the service there."""
    try:
        part = urlsplit(address)
        (part.hostname or "").encode("idna")
        # `port` is a ValueError beyond 65,535, and nobody answers at port 0.
        if part.scheme in ("http", "https") and part.hostname and part.port != 0 and not part.query:
            base = f"{part.scheme}://{part.netloc}"
            return part.path.strip("/"), httpx.Client(base_url=base, timeout=_ANSWER_SECONDS)
    except (ValueError, httpx.InvalidURL):
        pass
    raise ConfigError(
        f"{address}: not the address of a service. Give one such as http://127.0.0.1:8000/photos."
    )


def merged(answers: Sequence[Answer], k: int) -> Answer:
    """The best `k` results of all shards; equal scores stand in the order of the shards."""
    results: list[Result] = [result for answer in answers for result in answer.results]
    times = [answer.ms for answer in answers]
    return Answer(
        query=answers[0].query,
        unknown=answers[0].unknown,
        understood=answers[0].understood,
        results=sorted(results, key=lambda result: -result.score)[:k],
        right=answers[0].right,
        exact=all(answer.exact for answer in answers),
        reranked=sum(answer.reranked for answer in answers),
        ms=Milliseconds(
            parse=max(time.parse for time in times),
            encode=max(time.encode for time in times),
            search=max(time.search for time in times),
        ),
    )


def _png(picture: Image.Image) -> bytes:
    """The picture in a file without loss."""
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()


def _settings(kind: Search) -> dict[str, Any]:
    settings = {"k": kind.k, "where": kind.where, "least": kind.least}
    return {key: value for key, value in settings.items() if value is not None}
