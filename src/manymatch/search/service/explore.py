"""The requests of the explorer's page. Rows number images and captions; files leave by row."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from manymatch.config.names import Name
from manymatch.model.picture_bytes import decoded
from manymatch.results.runs import Direction
from manymatch.search.explore import lists
from manymatch.search.explore.explorer import Explorer
from manymatch.search.service import routes
from manymatch.util.errors import ManyMatchError
from manymatch.util.progress import say
from manymatch.util.regular_file import read_regular

router = APIRouter(prefix="/explore")
Row = Annotated[int, Query(ge=0)]


class Vote(BaseModel, extra="forbid"):
    """What an annotator says about a pair; `relevant` is null for a skipped pair."""

    image: int = Field(ge=0)
    caption: int = Field(ge=0)
    relevant: bool | None
    annotator: Name


def _explorer(request: Request) -> Explorer:
    return request.app.state.explorer


Explored = Annotated[Explorer, Depends(_explorer)]


@router.get("/about")
def about(explorer: Explored) -> Response:
    """The data set, the methods, and who judged how many pairs."""
    return routes.as_json(lists.about(explorer))


@router.get("/query")
def query(
    explorer: Explored,
    row: Row,
    way: Direction = "t2i",
    k: Annotated[int, Query(ge=1, le=100)] = 10,
    export: Literal["json"] | None = None,
) -> Response:
    """One query: the first items of each method, and the rank of each true item."""
    _check(explorer, **{way: row})
    return routes.as_json(lists.query(explorer, way, row, k), "query.json" if export else None)


@router.get("/explain")
def explain(explorer: Explored, method: str, image: Row, caption: Row) -> Response:
    """Why an image and a caption have their score. The first request loads the method's model."""
    _check(explorer, i2t=image, t2i=caption)
    shown, text = decoded(_picture(explorer, image)), explorer.texts["t2i"][caption].as_py()
    return routes.as_json(explorer.explain(method, shown, text).model_dump())


@router.post("/judgments")
async def judge(request: Request, explorer: Explored) -> Response:
    """Write a judgment to `judgments/DATASET.csv`. The body is the JSON of a `Vote`. A page of
    another site is refused."""
    routes.refuse_other_pages(request)
    if routes.sent_type(request) != "application/json":
        raise HTTPException(415, "send application/json")
    vote = await routes.json_body(request, Vote)
    _check(explorer, i2t=vote.image, t2i=vote.caption)
    await run_in_threadpool(explorer.vote, **dict(vote))
    return routes.as_json(await run_in_threadpool(lists.about, explorer))


@router.get("/images/{row}", **routes.PICTURE_HEADERS)
def picture(explorer: Explored, row: int, small: bool = False) -> Response:
    """The file of an image, or with `small` a JPEG of at most 320 x 320 pixels."""
    _check(explorer, i2t=row)
    return routes.as_picture(_picture(explorer, row), small)


@router.get("/{name}")
def listed(
    explorer: Explored,
    name: Literal["queries", "unjudged", "hubs", "map"],
    asked: Annotated[lists.Asked, Query()],
) -> Response:
    """A page of a list with further facts, or all rows as a file: queries with each method's
    recalls, pairs that nobody judged, items in the most first tens, places on a method's plane."""
    try:
        table, facts = lists.LISTS[name](explorer, asked)
        shown = asked.part(table)
    except KeyError as error:
        raise HTTPException(422, f"no method or column {error}") from None
    if asked.export == "csv":
        return routes.csv_file(shown, name)
    rows = shown.to_pylist()
    if asked.export:
        return routes.as_json(rows, f"{name}.json")
    return routes.as_json({"total": len(table), "rows": rows, **facts})


def _picture(explorer: Explorer, row: int) -> bytes:
    try:
        return read_regular(explorer.image_file(row))
    except (ManyMatchError, OSError) as error:
        say(str(error))
        raise HTTPException(404, "the picture is not here; the terminal says more") from None


def _check(explorer: Explorer, **rows: int) -> None:
    """Whether there are these rows of images (`i2t`) and of captions (`t2i`)."""
    for way, ids in explorer.ids.items():
        if not 0 <= rows.get(way, 0) < len(ids):
            raise HTTPException(404, f"no row {rows[way]}; there are {len(ids):,}")
