"""Searching by text, by picture and by item; explaining a score; facts and pictures of items.

Files leave by the id of an item alone.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from PIL import Image
from pydantic import BaseModel, Field, ValidationError
from pydantic.functional_validators import AfterValidator
from starlette.concurrency import run_in_threadpool

from manymatch.batch.caption_text import caption_fault
from manymatch.model.answer import Answer, Explanation, Item
from manymatch.model.picture_bytes import MOST_PIXELS, decoded, media_type, thumbnail
from manymatch.search.service.guard import read_body
from manymatch.search.service.served_index import Kind, ServedIndex
from manymatch.util.errors import nearest, repeated
from manymatch.util.json_file import unique_members

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_JSON = 64 * 1024
_MOST_PICTURE = 32 * 1024**2
_MOST_RESULTS = 1_000
_MOST_FILTER = 1_000
_PRIVATE = {"cache-control": "private, no-cache"}
PICTURE_HEADERS: dict[str, Any] = {
    "response_class": Response,
    "responses": {200: {"content": {"image/*": {}}}},
}


def _text(text: str) -> str:
    if fault := caption_fault(text):
        raise ValueError(fault)
    return text


Text = Annotated[str, AfterValidator(_text), Field(description="what the picture shows")]


class Fault(BaseModel):
    """The answer to a request that is refused."""

    error: str = Field(description="one line: what is wrong, and how to correct it")


class IndexRequest(BaseModel, extra="forbid"):
    """A request to one index."""

    index: str | None = Field(None, description="name of an index; default: the first one")


class Spread(IndexRequest):
    """A request for some items."""

    k: int = Field(18, ge=1, le=100, description="the most items")


class Settings(IndexRequest):
    """Settings of a search."""

    k: int = Field(20, ge=1, le=_MOST_RESULTS, description="the most results")
    where: str | None = Field(
        None, max_length=_MOST_FILTER, description="a condition that every result fulfils"
    )
    least: float | None = Field(
        None, allow_inf_nan=False, description="no result has a lower score"
    )
    export: Literal["csv"] | None = Field(None, description="the results as a file")


class Question(Settings):
    """A search by text."""

    q: Text


class ItemRequest(IndexRequest):
    """An item whose score is explained."""

    item: str | None = Field(None, description="id of an item")


class Pair(IndexRequest):
    """An item and a text, whose score is explained."""

    item: str
    q: Text


def fault_of(error: Any) -> str:
    """The first fault of a request that pydantic refused, in one line."""
    fault = error.errors()[0]
    key = ".".join(str(part) for part in fault["loc"] if part not in ("query", "body"))
    message = fault["msg"].removeprefix("Value error, ")
    return f"{key}: {message}" if key else message


def _answers(model: type[BaseModel], body: type[BaseModel] | None = None) -> dict[str, Any]:
    """The description in OpenAPI of an answer, and of a body that is JSON or a picture."""
    described: dict[str, Any] = {"responses": {200: {"model": model}}}
    if body:
        content = {
            "application/json": {"schema": body.model_json_schema()},
            "image/*": {"schema": {"type": "string", "format": "binary"}},
        }
        described["openapi_extra"] = {"requestBody": {"required": True, "content": content}}
    return described


async def _refuse_unread(request: Request) -> None:  # a `def` would wait for a thread
    """Refuse parameters of the address that no answer would read: 422."""
    names = [name for name, _ in request.query_params.multi_items()]
    if (twice := repeated(names)) is not None:
        raise HTTPException(422, f"{twice}: two values in the address. Give one")
    if names and request.method == "POST" and sent_type(request) == "application/json":
        raise HTTPException(422, f"{names[0]}: write the settings into the JSON, not the address")


def _index(request: Request, index: str | None) -> ServedIndex:
    """The index of a request; an unknown name is an `HTTPException` 404."""
    indexes: dict[str, ServedIndex] = request.app.state.indexes
    if index is None:
        return next(iter(indexes.values()))
    if index not in indexes:
        raise HTTPException(404, f"no index '{index}'{nearest(index, indexes)}")
    return indexes[index]


async def _requested(request: Request, asked: Annotated[IndexRequest, Query()]) -> ServedIndex:
    return _index(request, asked.index)


RequestedIndex = Annotated[ServedIndex, Depends(_requested)]
router = APIRouter(dependencies=[Depends(_refuse_unread)])


@router.get("/search", **_answers(Answer))
async def search(request: Request, question: Annotated[Question, Query()]) -> Response:
    """The items that fit a text best."""
    return await _found(_index(request, question.index), "text", question.q, question)


@router.post("/search", **_answers(Answer, Question))
async def search_by_body(request: Request, settings: Annotated[Settings, Query()]) -> Response:
    """The items that fit a picture best. The body is the file, and the settings are in the address;
    or the body is JSON with the fields of `GET /search`."""
    if sent_type(request) == "application/json":
        return await search(request, await json_body(request, Question))
    served = _index(request, settings.index)
    return await _found(served, "picture", await _picture(request, served), settings)


@router.get("/items")
def examples(request: Request, asked: Annotated[Spread, Query()]) -> Response:
    """The ids and paths of some items, spread over the index."""
    return as_json(_index(request, asked.index).examples(asked.k))


@router.get("/items/{item}/similar", **_answers(Answer))
async def similar(request: Request, item: str, settings: Annotated[Settings, Query()]) -> Response:
    """The items that fit an item of the index best."""
    served = _index(request, settings.index)
    await run_in_threadpool(served.item, item)
    return await _found(served, "item", item, settings)


@router.get("/explain", **_answers(Explanation))
async def explain(request: Request, pair: Annotated[Pair, Query()]) -> Response:
    """Why a picture of the index and a text have their score."""
    return await _explained(_index(request, pair.index), pair.item, pair.q)


@router.post("/explain", **_answers(Explanation, Pair))
async def explain_by_body(request: Request, item: Annotated[ItemRequest, Query()]) -> Response:
    """Why a caption of the index and a picture have their score. The body is the picture's file;
    or the body is JSON with the fields of `GET /explain`."""
    if sent_type(request) == "application/json":
        return await explain(request, await json_body(request, Pair))
    served = _index(request, item.index)
    return await _explained(served, item.item or "", await _picture(request, served))


@router.get("/items/{item}/picture", **PICTURE_HEADERS)
def picture(served: RequestedIndex, item: str) -> Response:
    """The file of an item."""
    return as_picture(served.picture(item), small=False)


@router.get("/items/{item}/thumbnail", **PICTURE_HEADERS)
def small_picture(served: RequestedIndex, item: str) -> Response:
    """The picture of an item as a JPEG of at most 320 x 320 pixels."""
    return as_picture(served.picture(item), small=True)


@router.get("/items/{item}", **_answers(Item))
def facts(served: RequestedIndex, item: str) -> Response:
    """What the index knows about an item."""
    return as_json({"index": served.name} | served.item(item).model_dump(mode="json"))


async def _found(served: ServedIndex, query: Any, request: Any, settings: Settings) -> Response:
    kind = Kind(query, settings.k, settings.where, settings.least)
    answer = await served.answer(kind, request)
    if settings.export:
        return csv_file(answer.columns(), served.name)
    return as_json({"index": served.name} | answer.model_dump())


async def _explained(served: ServedIndex, item: str, query: str | Image.Image) -> Response:
    await run_in_threadpool(served.item, item)
    explanation = await served.answer(Kind("explanation"), (item, query))
    return as_json(explanation.model_dump())


def refuse_other_pages(request: Request) -> None:
    """Refuse a request of a page of another address, which older browsers do not call cross-site.

    Raises:
        HTTPException: 403.
    """
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise HTTPException(403, "a page of another address cannot change anything here")


def sent_type(request: Request) -> str:
    """The media type of the body."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def json_body(request: Request, kind: type[BaseModel]) -> Any:
    """The body of a request as a `kind`.

    Raises:
        HTTPException: 413, 408, or 422 for a body that is not such JSON, or has a key twice.
    """
    body = await read_body(request, _MOST_JSON)
    try:
        asked = kind.model_validate_json(body, strict=True)
        json.loads(body, object_pairs_hook=unique_members)
    except ValidationError as error:
        raise HTTPException(422, fault_of(error)) from None
    except ValueError as error:
        raise HTTPException(422, f"{error}. Give the key once") from None
    return asked


async def _picture(request: Request, served: ServedIndex) -> Image.Image:
    """The picture in the body of a request.

    Raises:
        HTTPException: 415, 413, 408; 503, the index is not ready.
        DataError: the body is not a picture, or is too large a picture.
    """
    if not sent_type(request).startswith("image/"):
        raise HTTPException(
            415,
            f"content type '{sent_type(request)}': send a picture (image/jpeg, image/png ...) "
            "or application/json",
        )
    served.ready_index()
    data = await read_body(request, _MOST_PICTURE)
    return await run_in_threadpool(decoded, data, MOST_PIXELS)


def csv_file(columns: "pa.Table | Mapping[str, Sequence[object]]", name: str) -> Response:
    """A table as a file that the browser saves."""
    from manymatch.util.csv_table import csv_bytes  # which imports pyarrow

    headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
    return Response(csv_bytes(columns), media_type="text/csv", headers=headers)


def as_json(values: Any, file: str | None = None) -> Response:
    """JSON, which a browser saves under the name `file` if there is one."""
    headers = {"content-disposition": f'attachment; filename="{file}"'} if file else None
    return Response(orjson.dumps(values), media_type="application/json", headers=headers)


def as_picture(data: bytes, small: bool) -> Response:
    """A picture's file, or with `small` a JPEG of at most 320 x 320 pixels."""
    data = thumbnail(data) if small else data
    return Response(data, media_type=media_type(data), headers=_PRIVATE)
