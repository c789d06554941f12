"""What the explorer's page lists: queries, one query, pairs that nobody judged, hubs, the map; and
all images and captions of a split as one table, for other programs.

A list is a whole table with further facts; `Asked` takes the part of the table that is asked.
"""

from collections.abc import Sequence
from functools import lru_cache, reduce
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field

from manymatch.evaluation.votes import agreements
from manymatch.results.runs import Direction
from manymatch.search.explore.explorer import ITEMS, LATE, MARKS, OWN, TRUE, UNJUDGED, Explorer
from manymatch.util import files
from manymatch.util.errors import DataError

Row = dict[str, Any]
BOUNDS = (1, 5, 10, 20, 50, 100)
"""The last ranks of the bars of the histogram; one more bar has all larger ranks."""
Condition = Annotated[str, Field(pattern="^(own|true|wrong|unjudged):")]


class Asked(BaseModel):
    """The rows of a list, their order, and their form. A list reads the conditions that it has."""

    model_config = ConfigDict(extra="forbid")

    way: Direction = Field("t2i", description="t2i: captions ask; i2t: images ask")
    page: int = Field(0, ge=0, le=10**6)
    size: int = Field(50, ge=1, le=200, description="rows of a page")
    sort: str = Field("", description="a column, such as words; by default the list's own order")
    descending: bool = False
    export: Literal["csv", "json"] | None = Field(None, description="all rows as a file")

    word: str = Field("", max_length=200, description="queries: words of the caption, in order")
    right: list[str] = Field([], description="queries: methods with a true item within `cut`")
    wrong: list[str] = Field([], description="queries: methods without one")
    first: list[Condition] = Field([], description="queries: MARK:METHOD of the first item")
    cut: int = Field(1, ge=1, le=10**6)
    whole: bool = Field(True, description="queries: wait for columns that take a second to read")

    k: int = Field(1, ge=1, le=10, description="unjudged: the first items that count")
    annotator: str = Field("", max_length=200)
    kind: Literal["new", "second"] = Field("new", description="second: pairs that others judged")

    method: str = Field("", description="map: whose map")

    def part(self, table: pa.Table) -> pa.Table:
        """The rows that are asked. A cell without a value counts as the largest.

        Raises:
            KeyError: the table has no column `sort`.
        """
        first = self.page * self.size
        asked = slice(None) if self.export else slice(first, first + self.size)
        if not self.sort:
            return table[asked]
        order, empty = ("descending", "at_start") if self.descending else ("ascending", "at_end")
        column = dict(zip(table.column_names, table.columns, strict=True))[self.sort]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)  # Arrow sorts no dictionaries.
        rows = pc.array_sort_indices(column, order=order, null_placement=empty)
        return table.take(rows[asked])


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


def queries(explorer: Explorer, asked: Asked) -> tuple[pa.Table, Row]:
    """The rows of `Explorer.table` that fulfil all conditions; of each method the recalls on them,
    in percent, and the histogram of their ranks.

    Raises:
        KeyError: there is no such method.
    """
    late = asked.export or asked.first or asked.sort.startswith(LATE)
    table = explorer.table(asked.way, asked.whole or bool(late))
    firsts = [condition.partition(":") for condition in asked.first]
    kept = [pa.array(explorer.with_words(asked.way, asked.word))]
    kept += [pc.less_equal(table[f"rank_{name}"], asked.cut) for name in asked.right]
    kept += [pc.greater(table[f"rank_{name}"], asked.cut) for name in asked.wrong]
    kept += [pc.equal(table[f"first_{name}"], mark) for mark, _, name in firsts]
    table = table.filter(reduce(pc.and_, kept))
    methods = []
    for name in explorer.methods:
        ranks = table[f"rank_{name}"].to_numpy()
        facts: Row = {"name": name} | {f"r{cut}": _percent(ranks <= cut) for cut in (1, 5, 10)}
        if f"judged_{name}" in table.column_names and len(explorer.true):
            facts["judged_r1"] = _percent(table[f"judged_{name}"].to_numpy() == 1)
        bars = np.bincount(np.searchsorted(BOUNDS, ranks), minlength=len(BOUNDS) + 1)
        methods.append(facts | {"histogram": bars.tolist()})
    return table, {"methods": methods}


def _percent(hits: np.ndarray) -> float | None:
    return round(100 * float(hits.mean()), 2) if len(hits) else None


def query(explorer: Explorer, way: Direction, row: int, count: int) -> Row:
    """One query: the first items of each method, and each true item with its rank by method."""
    side = ITEMS[way]
    ids, texts = explorer.ids[side], explorer.texts[side]
    marks = explorer.marks(way, row, np.arange(len(ids)))
    # Annotated items come first, of which the page needs one.
    true = np.concatenate([np.flatnonzero(marks == one) for one in (OWN, TRUE)])

    def item(found: int, **facts: Any) -> Row:
        known = {"row": found, "id": ids[found].as_py(), "text": texts[found].as_py()}
        return known | {"mark": MARKS[marks[found]]} | facts

    positives = [item(one, ranks={}) for one in true[:200].tolist()]
    methods = []
    for name, method in explorer.methods.items():
        best, scores = method.ways[way].query(row)
        is_true = np.isin(best, true)
        for one in positives:
            place = np.flatnonzero(best == one["row"])
            # With the score of the last kept item, items that are not kept may count before.
            if len(place) and (scores[place[0]] > scores[-1] or len(best) == len(ids)):
                before = (scores >= scores[place[0]]) & ~is_true
                one["ranks"][name] = int(is_true[: place[0]].sum() + before.sum()) + 1
        first = zip(best[:count].tolist(), scores[:count].tolist(), strict=True)
        shown = [item(one, score=round(score, 4)) for one, score in first]
        rank = int(method.ways[way].ranks[row])
        methods.append({"name": name, "rank": rank, "depth": len(best), "items": shown})
    captions = np.flatnonzero(explorer.image_of == row) if way == "i2t" else np.array([row])
    asked = {"row": row, "id": explorer.ids[way][row].as_py()}
    own = explorer.texts["t2i"].take(pa.array(captions)).to_pylist()
    return asked | {"texts": own, "methods": methods, "positives": positives}


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


def unjudged(explorer: Explorer, asked: Asked) -> tuple[pa.Table, Row]:
    """The `agreed_pairs` that nobody judged; with `second` those that only others judged here. A
    pair that only others skipped counts as not judged."""
    pairs = agreed_pairs(explorer, asked.way, asked.k)
    images, captions = (pairs[name].to_numpy() for name in ("image", "caption"))
    keys = explorer.key(images, captions)
    own = np.isin(keys, explorer.keys(explorer.votes.get(asked.annotator, ())))
    others = [said for name, said in explorer.votes.items() if name != asked.annotator]
    judged = (pair for said in others for pair, answer in said.items() if answer is not None)
    kept = np.isin(keys, explorer.keys(judged))
    if asked.kind == "new":
        kept = ~kept & (explorer.marks("i2t", images, captions) == UNJUDGED)
    pairs = pairs.filter(pa.array(kept & ~own))
    for name, of, values in (
        ("image_id", "image", explorer.ids["i2t"]),
        ("caption_id", "caption", explorer.ids["t2i"]),
        ("text", "caption", explorer.texts["t2i"]),
    ):  # Each text is in memory once.
        texts = pa.DictionaryArray.from_arrays(pairs[of].combine_chunks(), values)
        pairs = pairs.append_column(name, texts)
    return pairs, {}


def hubs(explorer: Explorer, asked: Asked) -> tuple[pa.Table, Row]:
    """All items, those in the most first tens first, with the number of first tens of each method
    that have the item (`tens_METHOD`); and how uneven these numbers are: their skewness, the
    largest, and the share in percent of items in no first ten.

    References:
        Radovanovic et al., Hubs in Space, JMLR 2010: the skewness of N_k.
    """
    side = ITEMS[asked.way]
    columns = {"id": explorer.ids[side], "text": explorer.texts[side]}
    tens, facts = np.zeros(len(columns["id"]), int), []
    for name, method in explorer.methods.items():
        best = method.ways[asked.way].items[:, :10]
        own = np.bincount(best.ravel(), minlength=len(columns["id"]))
        deviations = (own - own.mean()) / (own.std() or 1)
        skewness, never = round(float((deviations**3).mean()), 2), _percent(own == 0)
        facts.append({"name": name, "skewness": skewness, "most": int(own.max()), "never": never})
        columns[f"tens_{name}"] = own
        tens += own
    order = pa.array(np.argsort(-tens, kind="stable"))
    return pa.table({"row": np.arange(len(tens))} | columns).take(order), {"methods": facts}


def places(explorer: Explorer, asked: Asked) -> tuple[pa.Table, Row]:
    """The images and then the captions, with the row of the image, and `x` and `y` on the plane of
    the two largest principal components.

    Raises:
        KeyError: there is no such method.
        DataError: the method has no embeddings here.
    """
    if explorer.methods[asked.method].ways["i2t"].points is None:
        raise DataError(f"{asked.method}: scores without embeddings have no map")
    x, y = f"x_{asked.method}", f"y_{asked.method}"
    table = explorer.everything(whole=False).select(["row", "id", "text", "kind", "image", x, y])
    return table.rename_columns({x: "x", y: "y"}), {}


LISTS = {"queries": queries, "unjudged": unjudged, "hubs": hubs, "map": places}


def write_export(explorer: Explorer, path: Path, vectors: Sequence[str]) -> int:
    """Write a row for each image and then for each caption, and return the number of rows.

    The columns are those of `Explorer.everything`, with the image's file in place of its row. Each
    method of `vectors` embeds the split anew and gives `vector_METHOD`; a set is the mean of its
    elements.

    Raises:
        DataError: a method of `vectors` is no trained model here.
    """
    models = {name: explorer.model_folder(name) for name in vectors}
    table = explorer.everything().drop_columns("row")
    pictures = pa.array([str(explorer.image_file(row)) for row in range(len(explorer.ids["i2t"]))])
    table = table.set_column(1, "image", pictures.take(table["image"].combine_chunks()))
    for name, folder in models.items():
        table = table.append_column(f"vector_{name}", _vectors(explorer, name, folder))
    with files.replacing(path) as partial:
        pq.write_table(table, partial)
    return len(table)


def _vectors(explorer: Explorer, name: str, folder: Path) -> pa.ChunkedArray:
    """The embeddings of the split's images and captions by a trained model."""
    from manymatch.evaluation.embedded_model import embed_split
    from manymatch.evaluation.split_results import set_means
    from manymatch.networks.device import pick_device

    features = explorer.methods[name].provenance.features
    shards = explorer.layout.shards(explorer.dataset, features)
    embedded = embed_split(folder, shards, explorer.split, pick_device()).embedded
    sides = (set_means(side).cpu().numpy() for side in (embedded.images, embedded.texts))
    return pa.chunked_array([pa.array([*side]) for side in sides])
