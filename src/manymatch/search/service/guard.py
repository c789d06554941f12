"""What every connection and request must fulfil, and what every answer carries."""

import asyncio
import ipaddress
import resource
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import h11
from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from manymatch.util.errors import one_line

_SECONDS = 120.0
"""A request whose answer is not sent by then ends; a client may read slowly for so long."""
_MOST_CONNECTIONS = 500
_HEAD_SECONDS = 20.0
_BODY_SECONDS = 20.0
_MOST_PARAMETERS = 1_000
"""The most parameters of an address. FastAPI needs minutes to read 100,000 parameters, and serves
nobody meanwhile."""
_MOST_CLIENTS = 10_000
"""Clients whose requests are counted; the one that was silent longest is forgotten first."""
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


def refusal(status: int, fault: str) -> JSONResponse:
    """An answer with one line that says what is wrong."""
    return JSONResponse({"error": one_line(fault)}, status)


def most_connections() -> int:
    """The most connections at once: 500, or a quarter of the files that the process may open.

    As many connections can arrive before earlier ones are closed, and requests open files, too.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_CONNECTIONS if files < 0 else max(1, min(_MOST_CONNECTIONS, files // 4))


class Connection(H11Protocol):
    """Closes a connection whose client sends no whole request within 20 to 40 s, or does not take
    an answer within 120 to 160 s. If there are too many connections, the one that was silent
    longest is closed.

    uvicorn waits without end for the first request, for the rest of a request's head, and for a
    client that reads nothing. It answers what is not HTTP in plain text.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._looking = self.loop.call_later(_HEAD_SECONDS, self._look, None)
        if len(self.connections) > most_connections():
            others = (one for one in self.connections if isinstance(one, Connection))
            idle = (one for one in others if one.is_idle and not one.transport.is_closing())
            min(idle, key=lambda one: one._since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._looking.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """Whether no request runs, and the client has taken the last answer."""
        answered = self.cycle is None or self.cycle.response_complete
        return answered and not self.transport.get_write_buffer_size()

    def _look(self, before: Any) -> None:
        """Close if no request came after the request `before`, or if its answer is not taken."""
        if self.cycle is not before:
            self._since = self.loop.time()
        elif self.is_idle or self.loop.time() - self._since > _SECONDS:
            self.transport.abort()  # to close politely means to wait for the client
            return
        self._looking = self.loop.call_later(_HEAD_SECONDS, self._look, self.cycle)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, and close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # else an answer has begun
            fault = "not a request of HTTP, or a header is too long or malformed"
            answer = refusal(400, f"{fault}. Send HTTP/1.1 without encryption")
            answer.headers.update(_HEADERS | {"connection": "close"})
            event = h11.Response(status_code=400, headers=answer.raw_headers, reason=b"Bad Request")
            for part in (event, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(part) or b"")
        if self.cycle:
            self.cycle.disconnected = True  # so that nothing more is sent
            self.cycle.message_event.set()
        self.transport.close()


class Rate:
    """Admits `rate` requests of each client, and twice as many after a pause."""

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, 2 * rate
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admits(self, client: str) -> bool:
        """Count one request of `client`; False if the client sent too many."""
        now = time.monotonic()
        left, before = self._left.pop(client, (self._most, now))
        left = min(self._most, left + (now - before) * self._rate)
        admitted = left >= 1
        self._left[client] = (left - 1 if admitted else left, now)
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return admitted


class Guard:
    """Wraps the application: checks host, asking page and rate, ends slow requests, adds headers,
    counts.

    HEAD is GET without the body.

    Args:
        host: the address that the service listens on.
        seen: called with the scope, the status and the seconds of each request.
    """

    def __init__(
        self, app: ASGIApp, host: str, rate: Rate, seen: Callable[[Scope, int, float], object]
    ) -> None:
        self._app, self._host, self._rate, self._seen = app, host, rate, seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started, status = time.monotonic(), 0
        head = scope["method"] == "HEAD"
        if head:
            scope = {**scope, "method": "GET"}

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            if head and "body" in message:
                message = {**message, "body": b""}
            await send(message)  # waits for a client that reads nothing
            status = status or message.get("status", 0)

        try:
            app = self._refusal(Request(scope)) or self._app
            async with asyncio.timeout(_SECONDS):
                await app(scope, receive, send_with_headers)
        except TimeoutError:
            if not status:
                late = refusal(504, f"no answer within {_SECONDS:.0f} s")
                await late(scope, receive, send_with_headers)
        finally:
            self._seen(scope, status, time.monotonic() - started)

    def _refusal(self, request: Request) -> JSONResponse | None:
        name = request.headers.get("host", "").lower()
        if not _trusted(name, self._host):
            return refusal(
                421, f"host '{name}': the service answers to its address and localhost only"
            )
        site, mode = (request.headers.get(f"sec-fetch-{part}") for part in ("site", "mode"))
        follows_link = mode == "navigate" and request.method in ("GET", "HEAD")
        if site == "cross-site" and not follows_link:
            return refusal(403, "a page of another site cannot ask this service")
        if request.scope["query_string"].count(b"&") >= _MOST_PARAMETERS:
            return refusal(400, f"more than {_MOST_PARAMETERS:,} parameters in the address")
        client = request.client.host if request.client else ""
        if not self._rate.admits(client):
            refused = refusal(429, "too many requests of this client; ask again in a second")
            refused.headers["retry-after"] = "1"
            return refused
        return None


def _trusted(header: str, host: str) -> bool:
    """Whether a request names this service.

    A page of another site can have its name point to this machine (DNS rebinding), but its requests
    then carry the name. Addresses in digits cannot be rebound.
    """
    name = header.rpartition(":")[0] if header.rpartition(":")[2].isdigit() else header
    name = name.removesuffix(".")  # of a complete name
    if name in ("localhost", host.lower()):
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


async def read_body(request: Request, most: int) -> bytes:
    """The body of a request.

    Raises:
        HTTPException: 413, the body has more than `most` bytes; 408, the body comes too slowly;
            400, the client is gone.
    """
    too_large = HTTPException(413, f"the request is too large; at most {most:,} bytes are read")
    if int(request.headers.get("content-length", "0")) > 4 * most:
        raise too_large
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= most:
                    body += chunk
                elif size > 4 * most:
                    raise too_large
    except TimeoutError:
        raise HTTPException(408, f"the request took more than {_BODY_SECONDS:.0f} s") from None
    except ClientDisconnect:
        raise HTTPException(400, "the client has closed the connection") from None
    # A client that still sends would not see the answer, so a little more is read, but not kept.
    if size > most:
        raise too_large
    return bytes(body)
