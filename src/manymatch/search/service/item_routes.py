"""The facts and the pictures of items. Files leave by the id of an item alone."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Response

from manymatch.model.answer import Item
from manymatch.model.picture_bytes import media_type, thumbnail
from manymatch.search.service.requests import IndexOfQuery

_KEPT = {"cache-control": "private, max-age=600"}
_PICTURE_HEADERS: dict[str, Any] = {
    "response_class": Response,
    "responses": {200: {"content": {"image/*": {}}}},
}

router = APIRouter()


@router.get("/items/{item}/picture", **_PICTURE_HEADERS)
def picture(served: IndexOfQuery, item: str) -> Response:
    """The file of an item."""
    data = served.picture(item)
    return Response(data, media_type=media_type(data), headers=_KEPT)


@router.get("/items/{item}/thumbnail", **_PICTURE_HEADERS)
def small_picture(served: IndexOfQuery, item: str) -> Response:
    """The picture of an item as a JPEG of at most 320 x 320 pixels."""
    return Response(thumbnail(served.picture(item)), media_type="image/jpeg", headers=_KEPT)


@router.get("/items/{item}", responses={200: {"model": Item}})
def facts(served: IndexOfQuery, item: str) -> Response:
    """What the index knows about an item."""
    values = {"index": served.name} | served.item(item).model_dump(mode="json")
    return Response(orjson.dumps(values), media_type="application/json")
