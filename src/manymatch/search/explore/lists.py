"""What the explorer's page lists: queries, one query, pairs that nobody judged, hubs."""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field

from manymatch.evaluation.votes import agreements
from manymatch.results.runs import WAYS, Direction
from manymatch.search.explore.explorer import ITEMS, MARKS, OWN, TRUE, UNJUDGED, Explorer

Row = dict[str, Any]
Part = tuple[int, pa.Table, Row]
"""The number of all rows of a list, those that are asked, and further facts."""
CUTS = (1, 5, 10)
BOUNDS = (1, 5, 10, 20, 50, 100)
"""The last ranks of the bars of the histogram; one more bar has all larger ranks."""
_TOP = 10
"""A hub is an item that is in too many first tens."""
Form = Literal["csv", "json"]
Condition = Annotated[str, Field(pattern="^(own|true|wrong|unjudged):")]


class Listed(BaseModel):
    """A list: which direction, which part, and in which form."""

    model_config = ConfigDict(extra="forbid")

    way: Direction = Field("t2i", description="t2i: captions ask; i2t: images ask")
    page: int = Field(0, ge=0, le=10**6)
    size: int = Field(50, ge=1, le=200, description="rows of a page")
    export: Form | None = Field(None, description="all rows as a file")

    @property
    def part(self) -> slice:
        """The rows that are asked."""
        first = self.page * self.size
        return slice(None) if self.export else slice(first, first + self.size)


class Filter(Listed):
    """Conditions on queries."""

    word: str = Field("", max_length=200, description="words of the caption, in this order")
    right: list[str] = Field([], description="methods with a true item among the first `cut`")
    wrong: list[str] = Field([], description="methods without one")
    first: list[Condition] = Field([], description="MARK:METHOD, the mark of the first item")
    cut: int = Field(1, ge=1, le=10**6)
    sort: str = Field("row", description="a column, such as words or rank_METHOD")
    descending: bool = False
    whole: bool = Field(True, description="wait for the columns that take a second to read")


class PairList(Listed):
    """Pairs that methods agree on."""

    k: int = Field(1, ge=1, le=10, description="the first items of each query that count")
    annotator: str = Field("", max_length=200)
    kind: Literal["new", "second"] = "new"


def about(explorer: Explorer) -> Row:
    """What the page shows before anything is asked."""
    return {
        "dataset": explorer.dataset,
        "split": explorer.split,
        "images": len(explorer.ids["i2t"]),
        "captions": len(explorer.ids["t2i"]),
        "judged": {"true": len(explorer.true), "wrong": len(explorer.false)},
        "complete": explorer.complete,
        "bounds": BOUNDS,
        "methods": [
            {"name": name, "map": method.ways["i2t"].points is not None}
            for name, method in explorer.methods.items()
        ],
        "annotators": {name: len(own) for name, own in explorer.votes.items()},
        "agreement": [one._asdict() for one in agreements(explorer.votes)],
    }


def queries(explorer: Explorer, asked: Filter) -> Part:
    """The rows of `Explorer.table` that fulfil all conditions, in the order of the column `sort`;
    of each method the recalls on them, in percent, and the histogram of their ranks.

    Raises:
        KeyError: there is no such method or column.
    """
    late = asked.first or asked.export or asked.sort.startswith(("first_", "judged_"))
    table = explorer.table(asked.way, asked.whole or bool(late))
    kept = [pc.less_equal(table[f"rank_{name}"], asked.cut) for name in asked.right]
    kept += [pc.greater(table[f"rank_{name}"], asked.cut) for name in asked.wrong]
    for condition in asked.first:
        mark, _, name = condition.partition(":")
        kept.append(pc.equal(table[f"first_{name}"], mark))
    if asked.word:
        kept.append(pa.array(explorer.with_words(asked.way, asked.word)))
    table = table.filter(reduce(pc.and_, kept)) if kept else table
    values = table[asked.sort].to_numpy()  # without a value: NaN, which is sorted as the largest
    order = np.argsort(values[::-1] if asked.descending else values, kind="stable")
    table = table.take(pa.array(len(order) - 1 - order[::-1] if asked.descending else order))
    methods = []
    for name in explorer.methods:
        ranks = table[f"rank_{name}"].to_numpy()
        recalls = {f"r{cut}": _percent(ranks <= cut) for cut in CUTS}
        if f"judged_{name}" in table.column_names and len(explorer.true):
            recalls["judged_r1"] = _percent(table[f"judged_{name}"].to_numpy() == 1)
        bars = np.bincount(np.searchsorted(BOUNDS, ranks), minlength=len(BOUNDS) + 1)
        methods.append({"name": name, **recalls, "histogram": bars.tolist()})
    return len(table), table[asked.part], {"methods": methods}


def _percent(hits: np.ndarray) -> float | None:
    return round(100 * float(hits.mean()), 2) if len(hits) else None


def named(explorer: Explorer, side: Direction, rows: np.ndarray) -> pa.Table:
    """Rows, ids and texts of images (`i2t`) or captions."""
    taken = pa.array(rows)
    texts = explorer.texts[side].take(taken)
    return pa.table({"row": taken, "id": explorer.ids[side].take(taken), "text": texts})


def query(explorer: Explorer, way: Direction, row: int, count: int) -> Row:
    """One query: the first items of each method, and each true item with its rank by method."""
    side = ITEMS[way]
    everything = np.arange(len(explorer.ids[side]))
    marks = explorer.marks(*explorer.pairs(way, np.full(len(everything), row), everything))
    true = np.flatnonzero((marks == OWN) | (marks == TRUE))
    positives = named(explorer, side, true[:200]).to_pylist()
    for one in positives:
        one |= {"mark": MARKS[marks[one["row"]]], "ranks": {}}
    columns = []
    for name, method in explorer.methods.items():
        best, scores = method.ways[way].query(row)
        is_true = np.isin(best, true)
        for one in positives:
            place = np.flatnonzero(best == one["row"])
            # With the score of the last kept item, items that are not kept may count before.
            if len(place) and (scores[place[0]] > scores[-1] or len(best) == len(everything)):
                before = (scores >= scores[place[0]]) & ~is_true
                one["ranks"][name] = int(is_true[: place[0]].sum() + before.sum()) + 1
        shown = named(explorer, side, best[:count]).to_pylist()
        for one, score in zip(shown, scores[:count].tolist(), strict=True):
            one |= {"score": round(score, 4), "mark": MARKS[marks[one["row"]]]}
        rank = int(method.ways[way].ranks[row])
        columns.append({"name": name, "rank": rank, "depth": len(best), "items": shown})
    captions = np.flatnonzero(explorer.image_of == row) if way == "i2t" else np.array([row])
    asked = {"row": row, "id": explorer.ids[way][row].as_py()}
    texts = explorer.texts["t2i"].take(pa.array(captions)).to_pylist()
    return asked | {"texts": texts, "methods": columns, "positives": positives}


@lru_cache(maxsize=4)
def agreed_pairs(explorer: Explorer, way: Direction, k: int) -> pa.Table:
    """The pairs that methods rank among the first `k`, the likeliest true pair first.

    The columns are the rows `image` and `caption`, the number of `methods` that agree, and the
    `share` of annotated pairs in the tables whose score is at most the pair's, as the mean of these
    methods.
    """
    keys, shares = [], []
    for method in explorer.methods.values():
        items, scores = method.ways[way].items, method.ways[way].scores
        best = items[:, :k].astype(np.int64)
        rows = np.broadcast_to(np.arange(len(best))[:, None], best.shape)
        keys.append(explorer.key(*explorer.pairs(way, rows, best)).ravel())
        own = np.sort(scores[explorer.annotated(way, items)])
        below = np.searchsorted(own, scores[:, :k].ravel(), side="right")
        shares.append(below / max(1, len(own)))
    pairs, inverse, agree = np.unique(np.concatenate(keys), return_inverse=True, return_counts=True)
    share = np.bincount(inverse, np.concatenate(shares)) / agree
    order = np.lexsort((-share, -agree))
    image, caption = np.divmod(pairs[order], len(explorer.image_of))
    facts = {"methods": agree[order], "share": share[order].round(4)}
    return pa.table({"image": image, "caption": caption, **facts})


def unjudged(explorer: Explorer, asked: PairList) -> Part:
    """The `agreed_pairs` that nobody judged, with ids and captions; with `second` those that only
    others judged here. A pair that only others skipped counts as not judged."""
    pairs = agreed_pairs(explorer, asked.way, asked.k)
    images, captions = (pairs[name].to_numpy() for name in ("image", "caption"))
    keys = explorer.key(images, captions)
    own = np.isin(keys, explorer.keys([*explorer.votes.get(asked.annotator, ())]))
    others = explorer.keys(
        [
            pair
            for name, said in explorer.votes.items()
            for pair, relevant in said.items()
            if name != asked.annotator and relevant is not None
        ]
    )
    kept = np.isin(keys, others)
    if asked.kind == "new":
        kept = ~kept & (explorer.marks(images, captions) == UNJUDGED)
    pairs = pairs.filter(kept & ~own)
    shown = pairs[asked.part].combine_chunks()
    ids = (explorer.ids[way].take(shown.column(i).combine_chunks()) for i, way in enumerate(WAYS))
    texts = explorer.texts["t2i"].take(shown["caption"].combine_chunks())
    for name, values in zip(("image_id", "caption_id", "text"), (*ids, texts), strict=True):
        shown = shown.append_column(name, values)
    return len(pairs), shown, {}


def hubs(explorer: Explorer, asked: Listed) -> Part:
    """All items, those in the most first tens first, with the number of first tens of each method
    that have the item (`tens_METHOD`); and how uneven these numbers are: their skewness, the
    largest, and the share in percent of items in no first ten.

    References:
        Radovanovic et al., Hubs in Space, JMLR 2010: the skewness of N_k.
    """
    side = ITEMS[asked.way]
    counts = {
        name: np.bincount(
            method.ways[asked.way].items[:, :_TOP].ravel(), minlength=len(explorer.ids[side])
        )
        for name, method in explorer.methods.items()
    }
    rows = np.argsort(-sum(counts.values()), kind="stable")[asked.part]
    table, facts = named(explorer, side, rows), list[Row]()
    for name, own in counts.items():
        table = table.append_column(f"tens_{name}", pa.array(own[rows]))
        spread, deviation = own - own.mean(), float(own.std())
        skewness = float((spread**3).mean()) / deviation**3 if deviation else 0.0
        never = _percent(own == 0)
        facts.append(
            {"name": name, "skewness": round(skewness, 2), "most": int(own.max()), "never": never}
        )
    return len(explorer.ids[side]), table, {"methods": facts}


def places(explorer: Explorer, method: str) -> pa.Table | None:
    """The images and then the captions, with the row of the image, and `x` and `y` on the plane of
    the two largest principal components; None: the method has no embeddings here."""
    sides = []
    for way in WAYS:
        images = np.arange(len(explorer.ids[way])) if way == "i2t" else explorer.image_of
        points = explorer.methods[method].ways[way].points
        if points is None:
            return None
        table = named(explorer, way, np.arange(len(images)))
        x, y = map(pa.array, points.T)
        kind = pa.array(["image" if way == "i2t" else "caption"] * len(images))
        for name, column in {"kind": kind, "image": pa.array(images), "x": x, "y": y}.items():
            table = table.append_column(name, column)
        sides.append(table)
    return pa.concat_tables(sides)
