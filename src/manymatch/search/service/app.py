"""The application: its routes, its page, its errors, its metrics, the state of its indexes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import PurePath
from threading import Thread
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Scope

import manymatch
from manymatch.search.service.guard import Guard, Rate, refusal
from manymatch.search.service.routes import Fault, fault_of, refuse_other_pages, router
from manymatch.search.service.served_index import ServedIndex
from manymatch.util.errors import ConfigError, ManyMatchError

if TYPE_CHECKING:
    from manymatch.search.explore.explorer import Explorer

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60)
"""The bounds of the histogram of requests' times."""
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def application(
    served: Sequence[ServedIndex],
    host: str = "127.0.0.1",
    rate: float = 500,
    useless: Callable[[], object] = lambda: None,
    explorer: "Explorer | None" = None,
) -> ASGIApp:
    """The application, which loads the indexes when it starts.

    Args:
        host, rate, explorer: as for `server.serve`; without an explorer `/explore` is missing.
        useless: called in a thread if no index can be loaded.

    Raises:
        ConfigError: two indexes have the same name.
    """
    metrics = Metrics()
    indexes: dict[str, ServedIndex] = {}
    for index in served:
        if index.name in indexes:
            raise ConfigError(f"two indexes are called '{index.name}'. Rename one of the folders.")
        indexes[index.name] = index
        metrics.add(index)

    reloading = asyncio.Lock()

    @asynccontextmanager
    async def loading(app: FastAPI) -> AsyncIterator[None]:
        threads = [index.load() for index in indexes.values()]

        def watch() -> None:
            for thread in threads:
                thread.join()
            if indexes and not any(index.status == "ready" for index in indexes.values()):
                useless()

        Thread(target=watch, daemon=True).start()
        yield
        for index in served:
            index.end()

    app = FastAPI(
        title="ManyMatch search",
        version=manymatch.__version__,
        docs_url=None,  # These pages load scripts from a network.
        redoc_url=None,
        lifespan=loading,
        responses={status: {"model": Fault} for status in ("4XX", 422, "5XX")},
    )
    app.state.indexes = indexes
    if indexes:
        app.include_router(router)
    _add_errors(app)
    pages = {"/": "index.html"} if indexes else {}
    if explorer:
        from manymatch.search.service import explore  # which imports NumPy

        app.state.explorer = explorer
        app.include_router(explore.router)
        pages |= {"/explore": "explore.html"}
    _add_pages(app, pages)

    @app.get("/health")
    async def health() -> dict[str, object]:
        """Whether the service is ready, and the state of each index."""
        states = [index.state() for index in indexes.values()]
        known = {state["status"] for state in states}
        names = ("loading", "ready", "failed")
        status = next((name for name in names if name in known), "ready")
        return {"status": status, "indexes": states}

    @app.post("/reload")
    async def reload(request: Request) -> dict[str, object]:
        """Take over indexes that were replaced, without waiting for the next look at the folders.
        The answer is that of `/health` afterwards."""
        refuse_other_pages(request)
        async with reloading:  # else many requests would hold all threads
            for index in served:
                await run_in_threadpool(index.follow)
        return await health()

    @app.get("/docs", response_class=Response, include_in_schema=False)
    async def docs() -> Response:
        """The requests as a page, which loads nothing from a network."""
        return Response(_described(app.openapi()), media_type="text/html")

    @app.get("/metrics", response_class=Response)
    def numbers() -> Response:
        """Counts and times, for Prometheus."""
        return Response(generate_latest(metrics.registry), media_type="text/plain; version=0.0.4")

    return Guard(app, host, Rate(rate), metrics.seen)


def _add_errors(app: FastAPI) -> None:
    """Every error is one line of JSON."""

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        known = {"Not Found": "no such address", "Method Not Allowed": "another method is expected"}
        fault = str(error.detail)
        if fault in known:  # the words of the framework
            fault = f"{request.method} {request.url.path}: {known[fault]}. /docs has all requests"
        return refusal(error.status_code, fault)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        return refusal(422, fault_of(error))

    @app.exception_handler(ManyMatchError)
    async def faulty(request: Request, error: ManyMatchError) -> Response:
        return refusal(400, str(error))

    @app.exception_handler(Exception)
    async def defect(request: Request, error: Exception) -> Response:
        return refusal(500, "a defect of the service; its terminal shows more")


def _add_pages(app: FastAPI, pages: Mapping[str, str]) -> None:
    """The files of the pages, which are read once. `pages`: the HTML file of each address."""

    def same(answer: Response) -> Response:
        return answer

    addresses = {file: address for address, file in pages.items()}
    for file in (files(__package__) / "page").iterdir():
        path = addresses.get(file.name, f"/page/{file.name}")
        if media_type := _TYPES.get(PurePath(file.name).suffix[1:]):
            kept = {"cache-control": "no-cache"}
            answer = Response(file.read_bytes(), media_type=media_type, headers=kept)
            app.add_api_route(path, partial(same, answer), include_in_schema=False)
    if "/" not in pages:
        app.add_api_route("/", lambda: RedirectResponse("/explore"), include_in_schema=False)


def _described(api: dict[str, Any]) -> str:
    """The page of the requests that OpenAPI describes."""
    parts = []
    for path, methods in api["paths"].items():
        for method, told in methods.items():
            rows = [
                f"<tr><td><code>{escape(one['name'])}</code></td><td>{escape(one['in'])}</td>"
                f"<td>{escape(one.get('description') or '')}</td></tr>"
                for one in told.get("parameters", ())
            ]
            bodies = ", ".join(told.get("requestBody", {}).get("content", ()))
            body = f"<p class='note'>Body: {escape(bodies)}</p>" if bodies else ""
            table = f"<div class='scroll'><table>{''.join(rows)}</table></div>" if rows else ""
            parts.append(
                f"<section><h3><code>{method.upper()} {escape(path)}</code></h3>"
                f"<p>{escape(told.get('description') or '')}</p>{body}{table}</section>"
            )
    title = escape(api["info"]["title"])
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{title}: requests</title><link rel='stylesheet' href='/page/page.css'>"
        f"<body><main><h1>{title}</h1><p>For programs: <a href='/openapi.json'>openapi.json</a>. "
        f"<a href='/'>The search page</a>.</p>{''.join(parts)}</main></body></html>"
    )


class Metrics:
    """Requests by route and status, their seconds, sizes of batches, and the process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._requests = Counter(
            "manymatch_requests", "Answered requests", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "manymatch_request_seconds",
            "Seconds until the whole answer is sent",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._batches = Histogram(
            "manymatch_batch_size",
            "Requests that are answered together",
            ["index"],
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=registry,
        )
        self._ready = Gauge(
            "manymatch_index_ready", "1 if the index answers", ["index"], registry=registry
        )

    def add(self, index: ServedIndex) -> None:
        """Count the batches of an index, and watch its status."""
        index.batch_seen = self._batches.labels(index.name).observe
        self._ready.labels(index.name).set_function(lambda: float(index.status == "ready"))

    def seen(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request. Unknown paths count as one route, so that there are few names."""
        route = getattr(scope.get("route"), "path", "other")
        self._requests.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)
