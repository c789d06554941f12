"""What the explorer's page lists: queries, one query, pairs that nobody judged, hubs, the map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from manymatch.evaluation.votes import agreements
from manymatch.results.runs import Direction
from manymatch.search.explore.explorer import MARKS, OWN, TRUE, Explorer

Row = dict[str, Any]
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
        "methods": [
            {"name": name, "map": method.ways["i2t"].points is not None}
            for name, method in explorer.methods.items()
        ],
        "annotators": {name: len(own) for name, own in explorer.votes.items()},
        "agreement": [one._asdict() for one in agreements(explorer.votes)],
    }


def column(explorer: Explorer, way: Direction, name: str) -> np.ndarray:
    """The column of queries that a sort names, such as `words` or `rank:cora`.

    Raises:
        KeyError: there is no such column.
    """
    kind, _, method = name.partition(":")
    if kind == "rank":
        return explorer.methods[method].ways[way].ranks
    if kind == "judged":
        return explorer.best_ranks(method, way)
    if kind == "spread":
        ranks = np.stack([one.ways[way].ranks for one in explorer.methods.values()])
        return np.log(ranks.max(0)) - np.log(ranks.min(0))
    if kind == "objects" and explorer.objects:
        return explorer.objects[way]
    columns = {
        "row": np.arange(len(explorer.ids[way])),
        "positives": explorer.positives(way),
        "words": explorer.words[way],
    }
    return columns[kind]


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
) -> np.ndarray:
    """The rows of the queries that fulfil all conditions, in the order of the column `sort`.

    Args:
        word: words of the caption, in this order.
        right, wrong: methods whose annotated item is, or is not, among the first `cut`.
        first: `MARK:METHOD`, the mark of the method's first item.

    Raises:
        KeyError: there is no such method, mark or column.
    """
    kept = np.ones(len(explorer.ids[way]), dtype=bool)
    if word:
        kept &= explorer.with_words(way, word)
    for names, is_right in ((right, True), (wrong, False)):
        for name in names:
            kept &= (explorer.methods[name].ways[way].ranks <= cut) == is_right
    for condition in first:
        mark, _, name = condition.partition(":")
        number = {known: place for place, known in enumerate(MARKS)}[mark]
        kept[kept] = explorer.first_marks(name, way, np.flatnonzero(kept)) == number
    rows = np.flatnonzero(kept)
    values = column(explorer, way, sort)[rows]
    return rows[np.argsort(-values if descending else values, kind="stable")]


def summary(explorer: Explorer, way: Direction, rows: np.ndarray) -> list[Row]:
    """The recalls of each method on some queries, in percent, and the histogram of their ranks;
    with judged items only when the explorer is warm."""
    found = []
    for name, method in explorer.methods.items():
        ranks = method.ways[way].ranks[rows]
        recalls = {f"r{cut}": _percent(ranks <= cut) for cut in CUTS}
        if explorer.is_warm and explorer.judged.true.any():
            recalls["judged_r1"] = _percent(explorer.best_ranks(name, way)[rows] == 1)
        bars = np.bincount(np.searchsorted(BOUNDS, ranks), minlength=len(BOUNDS) + 1)
        found.append({"name": name, **recalls, "histogram": bars.tolist()})
    return found


def _percent(hits: np.ndarray) -> float | None:
    return round(100 * float(hits.mean()), 2) if len(hits) else None


def queries(explorer: Explorer, way: Direction, rows: np.ndarray) -> pa.Table:
    """Queries as a table.

    When the explorer is warm, `first_METHOD` is the mark of the first item, and `judged_METHOD` the
    rank of the best annotated or judged true item (None: beyond the kept depth).
    """
    columns: dict[str, Sequence[Any]] = {
        "row": rows.tolist(),
        "id": [explorer.ids[way][row] for row in rows.tolist()],
        "text": texts(explorer, way, rows),
        "positives": explorer.positives(way)[rows].tolist(),
        "words": explorer.words[way][rows].tolist(),
    }
    if explorer.is_warm and explorer.objects:
        columns["objects"] = explorer.objects[way][rows].tolist()
    for name, method in explorer.methods.items():
        ranked = method.ways[way]
        columns[f"rank_{name}"] = ranked.ranks[rows].tolist()
        if explorer.is_warm:
            marks = explorer.first_marks(name, way, rows)
            columns[f"first_{name}"] = [MARKS[mark] for mark in marks.tolist()]
            best, depth = explorer.best_ranks(name, way)[rows].tolist(), ranked.items.shape[1]
            columns[f"judged_{name}"] = [rank if rank <= depth else None for rank in best]
    return pa.table(columns)


def texts(explorer: Explorer, way: Direction, rows: np.ndarray) -> list[str]:
    """The captions, or the first captions of images; `way` tells the side that asks."""
    taken = rows if way == "t2i" else explorer.first_caption[rows]
    found: list[str] = explorer.captions.take(pa.array(taken)).to_pylist()
    return found


def items(explorer: Explorer, way: Direction, rows: np.ndarray) -> list[Row]:
    """Rows, ids and texts of the items of a way."""
    side: Direction = "i2t" if way == "t2i" else "t2i"
    names = [explorer.ids[side][row] for row in rows.tolist()]
    shown = zip(rows.tolist(), names, texts(explorer, side, rows), strict=True)
    return [{"row": row, "id": name, "text": text} for row, name, text in shown]


def query(explorer: Explorer, way: Direction, row: int, count: int) -> Row:
    """One query: the first items of each method, and each true item with its rank by method."""
    everything = np.arange(len(explorer.ids["t2i" if way == "i2t" else "i2t"]))
    same = np.full(len(everything), row)
    marks = explorer.marks(*explorer.pairs(way, same, everything))
    true = np.flatnonzero((marks == OWN) | (marks == TRUE))
    positives = [
        one | {"mark": MARKS[marks[one["row"]]], "ranks": {}}
        for one in items(explorer, way, true[:200])
    ]
    columns = []
    for name, method in explorer.methods.items():
        best, scores = method.ways[way].query(row)
        is_true = np.isin(best, true)
        for one in positives:
            place = np.flatnonzero(best == one["row"])
            # With the score of the last kept item, items that are not kept may count before.
            if len(place) and (scores[place[0]] > scores[-1] or len(best) == len(everything)):
                at_least = scores >= scores[place[0]]
                earlier = int(is_true[: place[0]].sum())
                one["ranks"][name] = earlier + int((at_least & ~is_true).sum()) + 1
        shown = items(explorer, way, best[:count].astype(np.int64))
        for one, score in zip(shown, scores[:count].tolist(), strict=True):
            one |= {"score": round(score, 4), "mark": MARKS[marks[one["row"]]]}
        rank = int(method.ways[way].ranks[row])
        columns.append({"name": name, "rank": rank, "depth": len(best), "items": shown})
    captions = np.flatnonzero(explorer.image_of == row) if way == "i2t" else np.array([row])
    return {
        "row": row,
        "id": explorer.ids[way][row],
        "texts": texts(explorer, "t2i", captions),
        "methods": columns,
        "positives": positives,
    }


def hubs(explorer: Explorer, way: Direction) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The rows of all items, those in the most first tens first, and each method's counts."""
    counts = {
        name: np.bincount(
            method.ways[way].items[:, :_TOP].ravel(),
            minlength=len(explorer.ids["t2i" if way == "i2t" else "i2t"]),
        )
        for name, method in explorer.methods.items()
    }
    return np.argsort(-sum(counts.values()), kind="stable"), counts


def hub_rows(
    explorer: Explorer, way: Direction, counts: dict[str, np.ndarray], rows: np.ndarray
) -> pa.Table:
    """Items as a table, with the number of first tens of each method that have the item."""
    table = pa.Table.from_pylist(items(explorer, way, rows))
    for name, own in counts.items():
        table = table.append_column(f"tens_{name}", pa.array(own[rows]))
    return table


def unevenness(counts: dict[str, np.ndarray]) -> list[Row]:
    """How uneven the counts of each method are: their skewness, the largest count, and the share in
    percent of items in no first ten.

    References:
        Radovanovic et al., Hubs in Space, JMLR 2010: the skewness of N_k.
    """
    found: list[Row] = []
    for name, own in counts.items():
        spread, deviation = own - own.mean(), float(own.std())
        skewness = float((spread**3).mean()) / deviation**3 if deviation else 0.0
        facts = {"most": int(own.max()), "never": _percent(own == 0)}
        found.append({"name": name, "skewness": round(skewness, 2), **facts})
    return found
