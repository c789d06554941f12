"""An index in shards: a service on every host answers for its shard, and the answers are merged.

The best items of all shards are among the best items of each shard, so the merged answer is exact
if every shard's answer is exact.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx
from fastapi import HTTPException
from PIL import Image
from starlette.concurrency import run_in_threadpool

from manymatch.config.names import checked_name
from manymatch.model.answer import Answer, Explanation, Item, Milliseconds
from manymatch.search.service.any_index import AnyIndex, Kind
from manymatch.util.errors import ConfigError, first_line
from manymatch.util.progress import say

_BETWEEN = "."
"""Stands between the number of a shard and the id of its item."""
_ANSWER_SECONDS = 60.0
_SECONDS = 2.0
"""Between two questions whether a shard is ready."""


class ShardedIndex(AnyIndex):
    """An index whose items lie in shards on other hosts.

    Args:
        name: the name in requests.
        shards: a client for the service of each shard.
        asked: the name of the index on the shards; None: the first index of each.
    """

    waits = "waits for its shards"

    def __init__(self, name: str, shards: Sequence[httpx.Client], asked: str | None = None) -> None:
        super().__init__(name)
        self._shards, self._asked = shards, asked

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
        names, clients = zip(*map(_shard, addresses), strict=True)
        if len(set(names)) > 1:
            raise ConfigError(
                f"the shards have different names: {', '.join(sorted(set(names)))}. Serve each of "
                "them with the same --shard-of NAME."
            )
        return cls(checked_name(names[0] or "shards", "index"), clients, names[0] or None)

    def item(self, item: str) -> Item:
        number, own = self._owner(item)
        facts = Item.model_validate(self._values(number, f"/items/{own}"))
        return facts.model_copy(update={"id": item})

    def picture(self, item: str) -> bytes:
        number, own = self._owner(item)
        return self._ask(number, f"/items/{own}/picture").content

    async def answer(self, kind: Kind, request: Any) -> Answer | Explanation:
        self.check_ready()
        if kind.query == "explanation":
            return await run_in_threadpool(self._explanation, *request)
        numbers = range(len(self._shards))
        answers = await asyncio.gather(
            *(run_in_threadpool(self._answer, number, kind, request) for number in numbers)
        )
        # Equal scores stand in the order of the shards.
        results = [result for answer in answers for result in answer.results]
        times = [answer.ms.model_dump() for answer in answers]
        return answers[0].model_copy(
            update={
                "results": sorted(results, key=lambda result: -result.score)[: kind.k],
                "exact": all(answer.exact for answer in answers),
                "reranked": sum(answer.reranked for answer in answers),
                "ms": Milliseconds(**{step: max(ms[step] for ms in times) for step in times[0]}),
            }
        )

    def _explanation(self, item: str, query: str | Image.Image) -> Explanation:
        number, own = self._owner(item)
        question = {"q": query} if isinstance(query, str) else {"picture": _png(query)}
        return Explanation.model_validate(self._values(number, "/explain", item=own, **question))

    def _answer(self, number: int, kind: Kind, request: Any) -> Answer:
        """The answer of a shard, whose items have the number of the shard before their ids.

        The shard of an item knows its embedding; other shards embed its text or picture. Their
        answer is exact only if the picture is the indexed file: shards give a thumbnail.
        """
        path, question, indexed = "/search", dict[str, Any](), True
        if kind.query == "text":
            question["q"] = request
        elif kind.query == "picture":
            question["picture"] = _png(request)
        elif (owner := self._owner(request))[0] == number:
            path = f"/items/{owner[1]}/similar"
        elif self.facts["side"] == "texts":
            question["q"] = self.item(request).facts["text"]
        else:
            question["picture"] = file = self.picture(request)
            indexed = hashlib.sha256(file).hexdigest() == self.item(request).sha256
        settings = {"k": kind.k, "where": kind.where, "least": kind.least}
        answer = Answer.model_validate(self._values(number, path, **question, **settings))
        results = [
            result.model_copy(update={"id": f"{number}{_BETWEEN}{result.id}"})
            for result in answer.results
        ]
        return answer.model_copy(update={"results": results, "exact": answer.exact and indexed})

    def _owner(self, item: str) -> tuple[int, str]:
        """The number of the shard that has an item, and the item's id there."""
        self.check_ready()
        number, _, own = item.partition(_BETWEEN)
        if not number.isdecimal() or int(number) >= len(self._shards) or not own.isalnum():
            raise HTTPException(404, f"index '{self.name}': no item '{item}'")
        return int(number), own

    def _values(self, number: int, path: str, **question: Any) -> dict[str, Any]:
        """The JSON object with which a shard answers."""
        response = self._ask(number, path, **question)
        try:
            values = response.json()
        except ValueError:
            values = None
        if isinstance(values, dict):
            return values
        raise HTTPException(
            503, f"{self._shards[number].base_url} is not a service of ManyMatch. Check the address"
        )

    def _ask(
        self, number: int, path: str, picture: bytes | None = None, **question: Any
    ) -> httpx.Response:
        """The response of a shard; a missing or a refusing shard is an `HTTPException`."""
        shard = self._shards[number]
        known = {"index": self._asked, **question}.items()
        request: dict[str, Any] = {
            "params": {key: value for key, value in known if value is not None}
        }
        if picture is not None:
            request |= {"content": picture, "headers": {"content-type": "image/*"}}
        try:
            response = shard.request("GET" if picture is None else "POST", path, **request)
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
                self._compare([self._state_of(number) for number in range(len(self._shards))])
            except HTTPException as error:
                self.fault = error.detail
            if self.status == "loading":
                if self.fault != said:
                    said = self.fault
                    say(f"index '{self.name}' waits: {said}")
                time.sleep(_SECONDS)
        say(f"index '{self.name}': {self.fault or 'is ready'}")

    def _state_of(self, number: int) -> dict[str, Any]:
        for state in self._values(number, "/health").get("indexes", []):
            if self._asked in (None, state["name"]):
                return state
        missing = f"no index '{self._asked}'" if self._asked else "no index"
        raise HTTPException(503, f"shard {self._shards[number].base_url} has {missing}")

    def _compare(self, states: Sequence[dict[str, Any]]) -> None:
        """The index is ready if all shards are ready and have the same model."""
        for shard, state in zip(self._shards, states, strict=True):
            if state["status"] != "ready":
                fault = state.get("error", state["status"])
                raise HTTPException(503, f"shard {shard.base_url}: {fault}")
            for key in ("model", "side"):
                if state[key] != states[0][key]:
                    self.fault = f"shard {shard.base_url} has another {key} than the first shard"
                    self.status = "failed"
                    return
        own = {key: value for key, value in states[0].items() if key not in ("name", "status")}
        self.facts = own | {"items": sum(state["items"] for state in states)}
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


def _png(picture: Image.Image) -> bytes:
    """The picture in a file without loss."""
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()
