"""What the explorer's page lists: queries, one query, pairs that nobody judged, hubs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from manymatch.evaluation.votes import agreements
from manymatch.results.runs import WAYS, Direction
from manymatch.search.explore.explorer import ITEMS, MARKS, OWN, TRUE, UNJUDGED, Explorer

Row = dict[str, Any]
Kind = Literal["new", "second"]
CUTS = (1, 5, 10)
BOUNDS = (1, 5, 10, 20, 50, 100)
"""The last ranks of the bars of the histogram; one more bar has all larger ranks."""
_TOP = 10
"""A hub is an item that is in too many first tens."""


def about(explorer: Explorer) -> Row:
    """What the page shows before anything is asked."""
    judged = explorer.judged
    return {
        "dataset": explorer.dataset,
        "split": explorer.split,
        "images": len(explorer.ids["i2t"]),
        "captions": len(explorer.ids["t2i"]),
        "judged": {"true": int(judged.true.sum()), "wrong": int((~judged.true).sum())},
        "complete": explorer.complete,
        "bounds": BOUNDS,
        "methods": [
            {"name": name, "map": method.ways["i2t"].points is not None}
            for name, method in explorer.methods.items()
        ],
        "annotators": {name: len(own) for name, own in explorer.votes.items()},
        "agreement": [one._asdict() for one in agreements(explorer.votes)],
    }


def selected(
    explorer: Explorer,
    way: Direction,
    *,
    word: str = "",
    right: Sequence[str] = (),
    wrong: Sequence[str] = (),
    first: Sequence[str] = (),
    cut: int = 1,
    sort: str = "row",
    descending: bool = False,
    whole: bool = True,
) -> pa.Table:
    """The rows of `Explorer.table` that fulfil all conditions, in the order of the column `sort`.

    Args:
        word: words of the caption, in this order.
        right, wrong: methods whose annotated item is, or is not, among the first `cut`.
        first: `MARK:METHOD`, the mark of the method's first item.

    Raises:
        KeyError: there is no such method or column.
    """
    table = explorer.table(way, whole or bool(first) or sort.startswith(("first_", "judged_")))
    kept = [pc.less_equal(table[f"rank_{name}"], cut) for name in right]
    kept += [pc.greater(table[f"rank_{name}"], cut) for name in wrong]
    for condition in first:
        mark, _, name = condition.partition(":")
        kept.append(pc.equal(table[f"first_{name}"], mark))
    if word:
        kept.append(pa.array(explorer.with_words(way, word)))
    table = table.filter(reduce(pc.and_, kept)) if kept else table
    values = table[sort].to_numpy()  # without a value: NaN, which is sorted as the largest
    order = np.argsort(values[::-1] if descending else values, kind="stable")
    return table.take(pa.array(len(order) - 1 - order[::-1] if descending else order))


def summary(explorer: Explorer, table: pa.Table) -> list[Row]:
    """The recalls of each method on some queries, in percent, and the histogram of their ranks."""
    found = []
    for name in explorer.methods:
        ranks = table[f"rank_{name}"].to_numpy()
        recalls = {f"r{cut}": _percent(ranks <= cut) for cut in CUTS}
        if f"judged_{name}" in table.column_names and explorer.judged.true.any():
            recalls["judged_r1"] = _percent(table[f"judged_{name}"].to_numpy() == 1)
        bars = np.bincount(np.searchsorted(BOUNDS, ranks), minlength=len(BOUNDS) + 1)
        found.append({"name": name, **recalls, "histogram": bars.tolist()})
    return found


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


def unjudged(
    explorer: Explorer, way: Direction, k: int, annotator: str, kind: Kind, part: slice
) -> tuple[int, pa.Table]:
    """The number of `agreed_pairs` that nobody judged, and a part of them with ids and captions;
    with `second` of those that only others judged here. A pair that only others skipped counts as
    not judged."""
    pairs = agreed_pairs(explorer, way, k)
    images, captions = (pairs[name].to_numpy() for name in ("image", "caption"))
    keys = explorer.key(images, captions)
    own = np.isin(keys, explorer.keys([*explorer.votes.get(annotator, ())]))
    others = explorer.keys(
        [
            pair
            for name, said in explorer.votes.items()
            for pair, relevant in said.items()
            if name != annotator and relevant is not None
        ]
    )
    kept = np.isin(keys, others)
    if kind == "new":
        kept = ~kept & (explorer.marks(images, captions) == UNJUDGED)
    pairs = pairs.filter(kept & ~own)
    shown = pairs[part].combine_chunks()
    ids = (explorer.ids[way].take(shown.column(i).combine_chunks()) for i, way in enumerate(WAYS))
    texts = explorer.texts["t2i"].take(shown["caption"].combine_chunks())
    for name, values in zip(("image_id", "caption_id", "text"), (*ids, texts), strict=True):
        shown = shown.append_column(name, values)
    return len(pairs), shown


def hubs(explorer: Explorer, way: Direction, part: slice) -> tuple[pa.Table, list[Row]]:
    """A part of all items, those in the most first tens first, with the number of first tens of
    each method that have the item (`tens_METHOD`); and how uneven these numbers are: their
    skewness, the largest, and the share in percent of items in no first ten.

    References:
        Radovanovic et al., Hubs in Space, JMLR 2010: the skewness of N_k.
    """
    side = ITEMS[way]
    counts = {
        name: np.bincount(
            method.ways[way].items[:, :_TOP].ravel(), minlength=len(explorer.ids[side])
        )
        for name, method in explorer.methods.items()
    }
    rows = np.argsort(-sum(counts.values()), kind="stable")[part]
    table, facts = named(explorer, side, rows), list[Row]()
    for name, own in counts.items():
        table = table.append_column(f"tens_{name}", pa.array(own[rows]))
        spread, deviation = own - own.mean(), float(own.std())
        skewness = float((spread**3).mean()) / deviation**3 if deviation else 0.0
        never = _percent(own == 0)
        facts.append(
            {"name": name, "skewness": round(skewness, 2), "most": int(own.max()), "never": never}
        )
    return table, facts
