"""The requests of the explorer's page. Rows number images and captions; files leave by row."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
import pyarrow as pa
from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from manymatch.config.names import Name
from manymatch.model.picture_bytes import decoded, media_type, thumbnail
from manymatch.results.runs import Direction
from manymatch.search.explore import lists
from manymatch.search.explore.explorer import Explorer
from manymatch.search.service.routes import PICTURE_HEADERS, PRIVATE, csv_file, json_body
from manymatch.util.errors import ManyMatchError, nearest
from manymatch.util.progress import say
from manymatch.util.regular_file import read_regular

router = APIRouter(prefix="/explore")
Row = Annotated[int, Query(ge=0)]
Count = Annotated[int, Query(ge=1, le=100)]


class Vote(BaseModel):
    """What an annotator says about a pair; `relevant` is null for a skipped pair."""

    model_config = ConfigDict(extra="forbid", strict=True)

    image: int = Field(ge=0)
    caption: int = Field(ge=0)
    relevant: bool | None
    annotator: Name


def _explorer(request: Request) -> Explorer:
    explorer: Explorer = request.app.state.explorer
    return explorer


Explored = Annotated[Explorer, Depends(_explorer)]


@router.get("/about")
def about(explorer: Explored) -> Response:
    """The data set, the methods, and who judged how many pairs."""
    return _json(lists.about(explorer))


@router.get("/queries")
def queries(explorer: Explored, asked: Annotated[lists.Filter, Query()]) -> Response:
    """The queries that fulfil all conditions, and each method's recalls on all of them."""
    try:
        return _list(asked, "queries", *lists.queries(explorer, asked))
    except KeyError as error:
        raise HTTPException(422, f"no method or column {error}") from None


@router.get("/unjudged")
def unjudged(explorer: Explored, asked: Annotated[lists.PairList, Query()]) -> Response:
    """The pairs that methods agree on and that nobody judged."""
    return _list(asked, "unjudged", *lists.unjudged(explorer, asked))


@router.get("/hubs")
def hubs(explorer: Explored, asked: Annotated[lists.Listed, Query()]) -> Response:
    """The items in the most first tens."""
    return _list(asked, "hubs", *lists.hubs(explorer, asked))


@router.get("/query")
def query(
    explorer: Explored, row: Row, way: Direction = "t2i", k: Count = 10, export: bool = False
) -> Response:
    """One query: the first items of each method, and the rank of each true item."""
    _check(explorer, way, row)
    found = lists.query(explorer, way, row, k)
    return _json(found, "query.json" if export else None)


@router.get("/explain")
def explain(explorer: Explored, method: str, image: Row, caption: Row) -> Response:
    """Why an image and a caption have their score. The first request loads the method's model."""
    _check(explorer, "i2t", image)
    _check(explorer, "t2i", caption)
    _check_method(explorer, method)
    text = explorer.texts["t2i"][caption].as_py()
    return _json(explorer.explain(method, decoded(_picture(explorer, image)), text).model_dump())


@router.post("/judgments")
async def judge(request: Request, explorer: Explored) -> Response:
    """Write a judgment to `judgments/DATASET.csv`. The body is the JSON of a `Vote`. A page of
    another site is refused."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise HTTPException(403, "a page of another address cannot judge")
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "send application/json")
    vote = await json_body(request, Vote)
    _check(explorer, "i2t", vote.image)
    _check(explorer, "t2i", vote.caption)
    await run_in_threadpool(explorer.vote, **dict(vote))
    return _json(await run_in_threadpool(lists.about, explorer))


@router.get("/map")
def places(explorer: Explored, method: str, export: lists.Form | None = None) -> Response:
    """The columns of the images and then the captions, with their places on a method's plane."""
    _check_method(explorer, method)
    table = lists.places(explorer, method)
    if table is None:
        raise HTTPException(404, f"{method}: scores without embeddings have no map")
    return _file(table, export, "map") if export else _json(table.to_pydict())


@router.get("/images/{row}", **PICTURE_HEADERS)
def picture(explorer: Explored, row: int, small: bool = False) -> Response:
    """The file of an image, or with `small` a JPEG of at most 320 x 320 pixels."""
    _check(explorer, "i2t", row)
    data = _picture(explorer, row)
    data = thumbnail(data) if small else data
    return Response(data, media_type=media_type(data), headers=PRIVATE)


def _picture(explorer: Explorer, row: int) -> bytes:
    try:
        return read_regular(explorer.image_file(row))
    except (ManyMatchError, OSError) as error:
        say(str(error))
        raise HTTPException(404, "the picture is not here; the terminal says more") from None


def _check(explorer: Explorer, way: Direction, row: int) -> None:
    if not 0 <= row < len(explorer.ids[way]):
        raise HTTPException(404, f"no row {row}; there are {len(explorer.ids[way]):,}")


def _check_method(explorer: Explorer, method: str) -> None:
    if method not in explorer.methods:
        raise HTTPException(422, f"no method '{method}'{nearest(method, explorer.methods)}")


def _list(
    asked: lists.Listed, name: str, total: int, table: pa.Table, facts: lists.Row
) -> Response:
    """A page of a list with further facts, or all of its rows as a file."""
    if asked.export:
        return _file(table, asked.export, name)
    return _json({"total": total, "rows": table.to_pylist(), **facts})


def _json(values: Any, file: str | None = None) -> Response:
    """JSON, which the browser saves under the name `file` if there is one."""
    headers = {"content-disposition": f'attachment; filename="{file}"'} if file else None
    return Response(orjson.dumps(values), media_type="application/json", headers=headers)


def _file(table: pa.Table, kind: lists.Form, name: str) -> Response:
    """A table as a file that the browser saves."""
    if kind == "json":
        return _json(table.to_pylist(), f"{name}.json")
    return csv_file(table, name)
