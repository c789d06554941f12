"""A running search service, asked from Python."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from PIL import Image

from manymatch.model.answer import Answer, Explanation, Item
from manymatch.results.base import Record
from manymatch.util.arguments import checked
from manymatch.util.errors import ConfigError, DataError, first_line
from manymatch.util.regular_file import read_regular

_LONGEST = 10**6
"""Seconds that a client may wait."""
Kind = TypeVar("Kind", bound=Record)


class Client:
    """The service of `manymatch serve` at an address.

    Every method raises a `ConfigError` if nothing answers there, and a `DataError` with the
    service's own line if the request is refused.

    Args:
        url: such as "http://127.0.0.1:8000".
        index: the name of one of the service's indexes; None: the first one.
        auth: user and password of a proxy in front of the service.
        timeout: seconds to wait for an answer.
    """

    @checked
    def __init__(
        self,
        url: str,
        index: str | None = None,
        *,
        auth: tuple[str, str] | None = None,
        timeout: float = 60.0,
    ) -> None:
        if not 0 < timeout <= _LONGEST:
            raise ConfigError(f"timeout = {timeout}: expected seconds, at most {_LONGEST:,}")
        self._index, self._url = index, url.rstrip("/")
        try:
            self._http = httpx.Client(base_url=url, auth=auth, timeout=timeout)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ConfigError(f"{url}: not an address ({first_line(error)})") from None

    @checked
    def search(
        self,
        query: str | Path | Image.Image,
        k: int = 20,
        *,
        where: str | None = None,
        least: float | None = None,
    ) -> Answer:
        """The best `k` items for a text or a picture, as `Index.search` gives them."""
        asked: dict[str, Any] = {"k": k, "where": where, "least": least}
        if isinstance(query, str):
            return _record(Answer, self._ask("/search", q=query, **asked))
        return _record(Answer, self._ask("/search", _bytes_of(query), **asked))

    @checked
    def similar(
        self, id: str, k: int = 20, *, where: str | None = None, least: float | None = None
    ) -> Answer:
        """The other items that are nearest to the item `id`."""
        path = f"{_place(id)}/similar"
        return _record(Answer, self._ask(path, k=k, where=where, least=least))

    @checked
    def item(self, id: str) -> Item:
        """What the index knows about the item `id`."""
        return _record(Item, self._ask(_place(id)))

    @checked
    def picture(self, id: str) -> bytes:
        """The file of the item `id`."""
        return self._ask(f"{_place(id)}/picture")

    @checked
    def explain(self, id: str, query: str | Path | Image.Image) -> Explanation:
        """Why the item `id` and a text (of an index of captions: a picture) have their score."""
        if isinstance(query, str):
            return _record(Explanation, self._ask("/explain", item=id, q=query))
        return _record(Explanation, self._ask("/explain", _bytes_of(query), item=id))

    def health(self) -> dict[str, Any]:
        """The state of the service and of each index."""
        return self._state("GET", "/health")

    def reload(self) -> dict[str, Any]:
        """Let the service take over indexes that were replaced; its state afterwards."""
        return self._state("POST", "/reload")

    def _state(self, method: str, path: str) -> dict[str, Any]:
        try:
            state: dict[str, Any] = _parsed(self._request(method, path).content)
        except ValueError:
            raise DataError(f"{self._url}{path}: not a service of ManyMatch") from None
        return state

    def _ask(self, path: str, picture: bytes | None = None, **asked: Any) -> bytes:
        """The content of an answer; None among the settings means the service's default."""
        settings = {"index": self._index, **asked}
        given: dict[str, Any] = {
            "params": {key: value for key, value in settings.items() if value is not None}
        }
        if picture is not None:
            given |= {"content": picture, "headers": {"content-type": "image/*"}}
        return self._request("GET" if picture is None else "POST", path, **given).content

    def _request(self, method: str, path: str, **given: Any) -> httpx.Response:
        address = f"{self._url}{path}"
        try:
            response = self._http.request(method, path, **given)
        except UnicodeError as error:  # of the host's name, or half a character in a text
            raise DataError(
                f"{address}: cannot be asked ({first_line(error)}). Correct the address or the text"
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = first_line(error) or type(error).__name__
            raise ConfigError(f"{address}: no answer ({reason}). Is the service there?") from None
        if response.is_success:
            return response
        try:
            fault = str(_parsed(response.content)["error"])
        except (ValueError, KeyError, TypeError):
            fault = f"status {response.status_code}, and not from a service of ManyMatch"
        raise DataError(f"{address}: {fault}")


def _place(id: str) -> str:
    """The path of an item."""
    return f"/items/{quote(id, safe='', errors='replace')}"


def _parsed(content: bytes) -> Any:
    """The JSON of an answer; a `ValueError` for an answer that is none."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("lists nested too deeply") from None


def _record(kind: type[Kind], content: bytes) -> Kind:
    try:
        values = _parsed(content)
        values.pop("index", None)  # the name, which the service adds
        return kind.model_validate(values)
    except (ValueError, AttributeError, TypeError):
        raise DataError("the answer is not that of a service of ManyMatch") from None


def _bytes_of(picture: Path | Image.Image) -> bytes:
    if isinstance(picture, Path):
        try:
            return read_regular(picture)
        except OSError as error:
            raise DataError(f"{picture}: {error.strerror}") from None
    from manymatch.util.images import decoding, upright_rgb  # which imports NumPy

    file = io.BytesIO()
    with decoding(picture, "Give another picture"):  # PNG has not all modes of a picture
        upright_rgb(picture).save(file, "PNG", compress_level=1)
    return file.getvalue()
