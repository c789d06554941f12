"""Searching by text, by picture and by item, and explaining a score."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, HTTPException, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from manymatch.search.service.guard import read_body
from manymatch.search.service.picture_bytes import MOST_PIXELS, decoded
from manymatch.search.service.requests import (
    AnyIndex,
    Pair,
    Question,
    Settings,
    body_of,
    index_named,
    json_of,
)
from manymatch.search.service.served_index import Explain, Search

_MOST_PICTURE = 32 * 1024**2
_ANY = {"type": "string", "format": "binary"}

router = APIRouter()


@router.get("/search")
async def search(request: Request, question: Annotated[Question, Query()]) -> Response:
    """The items that fit a text best."""
    served = index_named(request, question.index)
    return await _found(served, "text", question.q, question)


@router.post(
    "/search",
    openapi_extra=body_of(("application/json", Question.model_json_schema()), ("image/*", _ANY)),
)
async def search_by_body(request: Request, settings: Annotated[Settings, Query()]) -> Response:
    """The items that fit a picture best. The body is the file, and the settings are in the address;
    or the body is JSON with the fields of `GET /search`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        question = await json_of(request, Question)
        return await _found(index_named(request, question.index), "text", question.q, question)
    if not kind.startswith("image/"):
        raise HTTPException(
            415, f"content type '{kind}': send image/jpeg or another picture, or application/json"
        )
    served = index_named(request, settings.index)
    served.check_ready()
    data = await read_body(request, _MOST_PICTURE)
    picture = await run_in_threadpool(decoded, data, MOST_PIXELS)
    return await _found(served, "picture", picture, settings)


@router.get("/items/{item}/similar")
async def similar(request: Request, item: str, settings: Annotated[Settings, Query()]) -> Response:
    """The items that fit an item of the index best."""
    served = index_named(request, settings.index)
    await run_in_threadpool(served.item, item)
    return await _found(served, "item", item, settings)


@router.get("/explain")
async def explain(request: Request, pair: Annotated[Pair, Query()]) -> Response:
    """Why an item and a text have their score."""
    return await _explained(request, pair)


@router.post("/explain", openapi_extra=body_of(("application/json", Pair.model_json_schema())))
async def explain_by_body(request: Request) -> Response:
    """Why an item and a text have their score; for long texts."""
    return await _explained(request, await json_of(request, Pair))


async def _found(served: AnyIndex, kind: Any, query: Any, settings: Settings) -> Response:
    answer = await served.answer(Search(kind, settings.k, settings.where, settings.least), query)
    return _json({"index": served.name} | answer.model_dump())


async def _explained(request: Request, pair: Pair) -> Response:
    served = index_named(request, pair.index)
    await run_in_threadpool(served.item, pair.item)
    explanation = await served.answer(Explain(), (pair.item, pair.q))
    return _json(explanation.model_dump())


def _json(values: dict[str, Any]) -> Response:
    return Response(orjson.dumps(values), media_type="application/json")
