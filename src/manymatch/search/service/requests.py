"""What a client may ask, and how a request names its index."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, HTTPException, Query, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.functional_validators import AfterValidator

from manymatch.batch.caption_text import caption_fault
from manymatch.search.service.guard import read_body
from manymatch.search.service.served_index import ServedIndex
from manymatch.search.service.sharded_index import ShardedIndex
from manymatch.util.errors import nearest

AnyIndex = ServedIndex | ShardedIndex

_MOST_JSON = 64 * 1024
_MOST_RESULTS = 1_000
_MOST_FILTER = 1_000


def _text(text: str) -> str:
    if fault := caption_fault(text):
        raise ValueError(fault)
    return text


Text = Annotated[str, AfterValidator(_text), Field(description="what the picture shows")]


class Fault(BaseModel):
    """The answer to a request that is refused."""

    error: str = Field(description="one line: what is wrong, and how to correct it")


class IndexRequest(BaseModel):
    """A request to one index."""

    model_config = ConfigDict(extra="forbid")

    index: str | None = Field(None, description="name of an index; default: the first one")


class Settings(IndexRequest):
    """Settings of a search."""

    k: int = Field(20, ge=1, le=_MOST_RESULTS, description="the most results")
    where: str | None = Field(
        None, max_length=_MOST_FILTER, description="a condition that every result fulfils"
    )
    least: float | None = Field(
        None, allow_inf_nan=False, description="no result has a lower score"
    )


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


async def json_of(request: Request, kind: type[BaseModel]) -> Any:
    """The body of a request as a `kind`.

    Raises:
        HTTPException: 413, 408, or 422 for a body that is not such JSON.
    """
    try:
        return kind.model_validate_json(await read_body(request, _MOST_JSON))
    except ValidationError as error:
        raise HTTPException(422, fault_of(error)) from None


def media_type_of(request: Request) -> str:
    """The media type of the body."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json(request: Request) -> bool:
    """Whether the body says that it is JSON."""
    return media_type_of(request) == "application/json"


def body_of(kind: type[BaseModel]) -> dict[str, Any]:
    """The description in OpenAPI of a body that is a `kind` in JSON, or a picture."""
    schemas = {
        "application/json": kind.model_json_schema(),
        "image/*": {"type": "string", "format": "binary"},
    }
    content = {media_type: {"schema": schema} for media_type, schema in schemas.items()}
    return {"requestBody": {"required": True, "content": content}}


def index_named(request: Request, name: str | None) -> AnyIndex:
    """The index of a request.

    Raises:
        HTTPException: 404, there is no such index.
    """
    indexes: dict[str, AnyIndex] = request.app.state.indexes
    if name is None:
        return next(iter(indexes.values()))
    if name not in indexes:
        raise HTTPException(404, f"no index '{name}'{nearest(name, indexes)}")
    return indexes[name]


def _index(
    request: Request,
    index: Annotated[str | None, Query(description="name of an index; default: the first")] = None,
) -> AnyIndex:
    return index_named(request, index)


RequestedIndex = Annotated[AnyIndex, Depends(_index)]
