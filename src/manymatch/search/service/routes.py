"""Searching by text, by picture and by item; explaining a score; facts and pictures of items.

Files leave by the id of an item alone.
"""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, HTTPException, Query, Request, Response
from PIL import Image
from starlette.concurrency import run_in_threadpool

from manymatch.model.answer import Answer, Explanation, Item
from manymatch.model.picture_bytes import MOST_PIXELS, decoded, media_type, thumbnail
from manymatch.search.service.guard import read_body
from manymatch.search.service.requests import (
    AnyIndex,
    ItemRequest,
    Pair,
    Question,
    RequestedIndex,
    Settings,
    body_of,
    index_named,
    is_json,
    json_of,
    media_type_of,
)
from manymatch.search.service.served_index import Explain, Search

_MOST_PICTURE = 32 * 1024**2
_ANSWER: dict[int | str, Any] = {200: {"model": Answer}}
_WHY: dict[int | str, Any] = {200: {"model": Explanation}}
_KEPT = {"cache-control": "private, max-age=600"}
_PICTURE_HEADERS: dict[str, Any] = {
    "response_class": Response,
    "responses": {200: {"content": {"image/*": {}}}},
}

router = APIRouter()


@router.get("/search", responses=_ANSWER)
async def search(request: Request, question: Annotated[Question, Query()]) -> Response:
    """The items that fit a text best."""
    served = index_named(request, question.index)
    return await _found(served, "text", question.q, question)


@router.post("/search", responses=_ANSWER, openapi_extra=body_of(Question))
async def search_by_body(request: Request, settings: Annotated[Settings, Query()]) -> Response:
    """The items that fit a picture best. The body is the file, and the settings are in the address;
    or the body is JSON with the fields of `GET /search`."""
    if is_json(request):
        question = await json_of(request, Question)
        return await _found(index_named(request, question.index), "text", question.q, question)
    served = index_named(request, settings.index)
    return await _found(served, "picture", await _picture(request, served), settings)


@router.get("/items/{item}/similar", responses=_ANSWER)
async def similar(request: Request, item: str, settings: Annotated[Settings, Query()]) -> Response:
    """The items that fit an item of the index best."""
    served = index_named(request, settings.index)
    await run_in_threadpool(served.item, item)
    return await _found(served, "item", item, settings)


@router.get("/explain", responses=_WHY)
async def explain(request: Request, pair: Annotated[Pair, Query()]) -> Response:
    """Why a picture of the index and a text have their score."""
    return await _explained(index_named(request, pair.index), pair.item, pair.q)


@router.post("/explain", responses=_WHY, openapi_extra=body_of(Pair))
async def explain_by_body(request: Request, item: Annotated[ItemRequest, Query()]) -> Response:
    """Why a caption of the index and a picture have their score. The body is the picture's file;
    or the body is JSON with the fields of `GET /explain`."""
    if is_json(request):
        pair = await json_of(request, Pair)
        return await _explained(index_named(request, pair.index), pair.item, pair.q)
    served = index_named(request, item.index)
    return await _explained(served, item.item or "", await _picture(request, served))


@router.get("/items/{item}/picture", **_PICTURE_HEADERS)
def picture(served: RequestedIndex, item: str) -> Response:
    """The file of an item."""
    data = served.picture(item)
    return Response(data, media_type=media_type(data), headers=_KEPT)


@router.get("/items/{item}/thumbnail", **_PICTURE_HEADERS)
def small_picture(served: RequestedIndex, item: str) -> Response:
    """The picture of an item as a JPEG of at most 320 x 320 pixels."""
    return Response(thumbnail(served.picture(item)), media_type="image/jpeg", headers=_KEPT)


@router.get("/items/{item}", responses={200: {"model": Item}})
def facts(served: RequestedIndex, item: str) -> Response:
    """What the index knows about an item."""
    values = {"index": served.name} | served.item(item).model_dump(mode="json")
    return _json(values)


async def _found(served: AnyIndex, kind: Any, query: Any, settings: Settings) -> Response:
    answer = await served.answer(Search(kind, settings.k, settings.where, settings.least), query)
    return _json({"index": served.name} | answer.model_dump())


async def _explained(served: AnyIndex, item: str, query: str | Image.Image) -> Response:
    await run_in_threadpool(served.item, item)
    explanation = await served.answer(Explain(), (item, query))
    return _json(explanation.model_dump())


async def _picture(request: Request, served: AnyIndex) -> Image.Image:
    """The picture in the body of a request.

    Raises:
        HTTPException: 415, 413, 408; 503, the index is not ready.
        DataError: the body is not a picture, or is too large a picture.
    """
    if not media_type_of(request).startswith("image/"):
        raise HTTPException(
            415,
            f"content type '{media_type_of(request)}': send a picture (image/jpeg, image/png ...) "
            "or application/json",
        )
    served.check_ready()
    data = await read_body(request, _MOST_PICTURE)
    return await run_in_threadpool(decoded, data, MOST_PIXELS)


def _json(values: dict[str, Any]) -> Response:
    return Response(orjson.dumps(values), media_type="application/json")
