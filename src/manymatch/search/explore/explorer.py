"""What the explorer knows: the methods' rankings of one split, its captions, and who judged what.

The queries of a direction are a table, so that filtering and sorting 25,000 queries of nine methods
takes milliseconds. Files are read when they are first used.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock, RLock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from PIL import Image

from manymatch.config.layout import Layout
from manymatch.datasets.base import JUDGED, caption_columns
from manymatch.datasets.image_files import image_path, read_image_folder
from manymatch.evaluation.votes import Pair, Votes, majority, read_votes, record
from manymatch.model.answer import Explanation
from manymatch.results.metrics import Metrics, Provenance
from manymatch.results.ranked import Ranked
from manymatch.results.runs import WAYS, Direction
from manymatch.util.errors import DataError, ManyMatchError, nearest
from manymatch.util.parquet_file import read_table, table_faults
from manymatch.util.progress import say

MARKS = ("own", "true", "wrong", "unjudged")
"""`results.retrieval.Mark` by number."""
OWN, TRUE, WRONG, UNJUDGED = range(4)
ITEMS: dict[Direction, Direction] = {"i2t": "t2i", "t2i": "i2t"}
"""The direction in which the items of a direction ask."""
LATE = "item_", "score_", "first_", "judged_"
"""The beginnings of columns that need the whole tables of the methods."""


@dataclass(eq=False)
class Method:
    """One evaluated result: its metrics, and its ranking of both directions."""

    name: str
    metrics: Metrics
    provenance: Provenance
    ways: dict[Direction, Ranked]


class Explorer:
    """The results of the data set `dataset` in a project.

    Rows number the images and captions of the split; a "way" is `i2t` (images ask) or `t2i`.

    Raises:
        DataError: there is no result, or the tables do not fit each other.
    """

    def __init__(self, layout: Layout, dataset: str) -> None:
        self.layout, self.dataset = layout, dataset
        self._lock, self._explaining = RLock(), Lock()
        self._models: dict[str, Any] = {}
        self.methods = {method.name: method for method in read_methods(layout, dataset)}
        first = next(iter(self.methods.values()))
        self.split = first.provenance.split
        self.ids: dict[Direction, pa.Array] = {way: one.ids for way, one in first.ways.items()}
        columns = caption_columns("image_id", "caption_id", "caption", "file")
        path, of_split = layout.captions(dataset), [("split", "=", self.split)]
        with table_faults(path, "captions"):
            table = pq.read_table(path, columns=columns.names, filters=of_split).cast(columns)
        rows = pc.index_in(self.ids["t2i"], value_set=table["caption_id"])
        table = table.take(pc.fill_null(rows, 0))
        image_of = pc.index_in(table["image_id"], value_set=self.ids["i2t"])
        if rows.null_count or image_of.null_count:
            raise DataError(f"{path}: lacks captions of the results. Evaluate the models again")
        self.image_of = np.asarray(image_of, dtype=np.int64)
        self.captions_of = np.bincount(self.image_of, minlength=len(self.ids["i2t"]))
        first_caption = np.searchsorted(self.image_of, np.arange(len(self.captions_of)))
        captions = table["caption"].combine_chunks()
        self.texts = {"t2i": captions, "i2t": captions.take(pa.array(first_caption))}
        """The captions, and the first captions of images."""
        self._files = table["file"].combine_chunks().take(pa.array(first_caption))
        self._raw = layout.raw(dataset)
        self._folder = read_image_folder(self._raw)
        self._take(read_votes(layout.votes(dataset)))

    # --- What is judged

    @cached_property
    def _judged(self) -> tuple[dict[Pair, bool], bool]:
        """What the data set's table says about pairs, and whether all true pairs are known."""
        path = self.layout.relevance(self.dataset)
        if not path.is_file():
            return {}, False
        table = read_table(path, JUDGED, optional=["relevant"])
        columns = {"relevant": [True] * len(table)} | table.to_pydict()
        pairs = zip(columns["image_id"], columns["caption_id"], strict=True)
        complete = (table.schema.metadata or {}).get(b"complete") == b"true"
        return dict(zip(pairs, columns["relevant"], strict=True)), complete

    def _take(self, votes: Votes) -> None:
        """Take over what people judged here, which counts more than the data set's table."""
        pairs, self.complete = self._judged
        pairs = pairs | majority(votes)
        keys, said = self.keys(pairs), np.array([*pairs.values()], dtype=bool)
        self.true, self.false = (keys[(keys >= 0) & (said == one)] for one in (True, False))
        """The keys of the judged pairs besides annotated ones."""
        self.votes = votes
        self._tables: dict[tuple[Direction, bool], pa.Table] = {}

    def vote(self, image: int, caption: int, relevant: bool | None, annotator: str) -> None:
        """Write what an annotator says about a pair of rows; None: skipped."""
        pair = self.ids["i2t"][image].as_py(), self.ids["t2i"][caption].as_py()
        with self._lock:  # else an earlier vote could replace a later one in memory
            self._take(record(self.layout.votes(self.dataset), pair, relevant, annotator))

    def key(self, image: np.ndarray, caption: np.ndarray) -> np.ndarray:
        """The number of a pair of rows."""
        return image * len(self.image_of) + caption

    def keys(self, pairs: Iterable[Pair]) -> np.ndarray:
        """The keys of pairs of ids; -1 for a pair of another split and for an annotated pair."""
        names, sides = np.array([*pairs], dtype=object).reshape(-1, 2), self.ids.values()
        rows = [pc.index_in(pa.array(names[:, i], "utf8"), ids) for i, ids in enumerate(sides)]
        image, caption = (np.asarray(pc.fill_null(one, -1), np.int64) for one in rows)
        other = (image >= 0) & (caption >= 0) & (self.image_of[caption] != image)
        return np.where(other, self.key(image, caption), -1)

    def marks(self, way: Direction, queries: Any, items: np.ndarray) -> np.ndarray:
        """The `MARKS` of the pairs of queries and items, as numbers."""
        images, captions = self.pairs(way, queries, items)
        keys = self.key(images, captions)
        found = np.full(keys.shape, WRONG if self.complete else UNJUDGED, dtype=np.int8)
        found[np.isin(keys, self.true)], found[np.isin(keys, self.false)] = TRUE, WRONG
        found[self.image_of[captions] == images] = OWN
        return found

    def pairs(self, way: Direction, queries: Any, items: Any) -> tuple[Any, Any]:
        """Queries and items of a way as images and captions, or images and captions as queries and
        items."""
        return (queries, items) if way == "i2t" else (items, queries)

    def annotated(self, way: Direction, items: np.ndarray) -> np.ndarray:
        """Which `items (q, k)` are annotated pairs with their query."""
        images, captions = self.pairs(way, np.arange(len(items))[:, None], items)
        return self.image_of[captions] == images

    # --- The queries

    def table(self, way: Direction, whole: bool = True) -> pa.Table:
        """A row for each query of a direction, with the columns of docs/explorer.md and `row`. The
        columns `LATE` need all items and scores, which take a second to read: without `whole` they
        are there if they were read."""
        with self._lock:
            whole = whole or (way, True) in self._tables
            if (way, whole) not in self._tables:
                self._tables[way, whole] = self._queries(way, whole)
            return self._tables[way, whole]

    def _queries(self, way: Direction, whole: bool) -> pa.Table:
        rows = np.arange(len(self.ids[way]))
        true = self.pairs(way, *np.divmod(self.true, len(self.image_of)))
        own = self.captions_of if way == "i2t" else np.ones(len(rows), dtype=np.int64)
        ranks = np.stack([method.ways[way].ranks for method in self.methods.values()])
        columns = {"row": rows, "id": self.ids[way], "text": self.texts[way]}
        columns["positives"] = own + np.bincount(true[0], minlength=len(rows))
        columns |= {name: self._means(way, one).round(1) for name, one in self._sizes.items()}
        columns["spread"] = (ranks.max(0) / ranks.min(0)).round(4)
        nowhere = pa.nulls(len(rows), pa.float32())
        for name, method in self.methods.items():
            ranked = method.ways[way]
            x, y = (nowhere, nowhere) if ranked.points is None else ranked.points.T
            columns |= {f"rank_{name}": ranked.ranks, f"x_{name}": x, f"y_{name}": y}
            if whole:
                first = ranked.items[:, 0].astype(np.int64)
                marks = pa.array(MARKS).take(pa.array(self.marks(way, rows, first)))
                best = self._best_ranks(ranked, way, *true)
                columns[f"item_{name}"] = self.ids[ITEMS[way]].take(pa.array(first))
                columns[f"score_{name}"] = ranked.scores[:, 0]
                columns[f"first_{name}"] = marks
                columns[f"judged_{name}"] = pa.array(best, mask=best > ranked.items.shape[1])
        return pa.table(columns)

    def _best_ranks(
        self, ranked: Ranked, way: Direction, query: np.ndarray, item: np.ndarray
    ) -> np.ndarray:
        """`(q,)` the rank of each query's best annotated or judged true item (the pairs of `query`
        and `item`); one more than the depth of the table if the rank is not known. An item that is
        not true and has the same score counts before; if the last item of the table has that score,
        more such items may follow, and only the best annotated item's rank is known."""
        items, scores, depth = ranked.items, ranked.scores, ranked.items.shape[1]
        true = self.annotated(way, items)
        hit, place = np.nonzero(items[query] == item[:, None].astype(np.int32))
        true[query[hit], place] = True
        level = scores[np.arange(len(items)), true.argmax(1)]
        best = ((scores >= level[:, None]) & ~true).sum(1) + 1
        cut = (level == scores[:, -1]) & (depth < len(self.ids[ITEMS[way]]))
        return np.where(~true.any(1) | cut, np.minimum(ranked.ranks, depth + 1), best)

    def everything(self, whole: bool = True) -> pa.Table:
        """The rows of the images' `table` and of the captions', with the columns `kind` ("image" or
        "caption") and `image` (the row of the image)."""
        sides = []
        for way in WAYS:
            images = np.arange(len(self.captions_of)) if way == "i2t" else self.image_of
            kind = ["image" if way == "i2t" else "caption"] * len(images)
            table = self.table(way, whole).add_column(0, "kind", [kind])
            sides.append(table.add_column(1, "image", [images]))
        return pa.concat_tables(sides, promote_options="permissive")

    @cached_property
    def _sizes(self) -> dict[str, np.ndarray]:
        """The captions' numbers of words, and of objects in scene graphs if they are here."""
        lists = {"words": pc.utf8_split_whitespace(self.texts["t2i"])}
        path = self.layout.scene_graphs(self.dataset)
        if path.is_file():
            with table_faults(path, "scene_graphs"):
                graphs = pq.read_table(path, columns=["caption_id", "objects"])
            rows = pc.index_in(self.ids["t2i"], value_set=graphs["caption_id"])
            lists["objects"] = graphs["objects"].take(rows)
        return {name: np.asarray(pc.list_value_length(one), float) for name, one in lists.items()}

    def _means(self, way: Direction, values: np.ndarray) -> np.ndarray:
        """Values of captions, or the means of the images' captions."""
        if way == "t2i":
            return values
        return np.bincount(self.image_of, values, len(self.captions_of)) / self.captions_of

    def with_words(self, way: Direction, text: str) -> np.ndarray:
        """`(q,)`: whether the caption, or a caption of the image, has the words in this order.
        A blank text fits all; a text of signs alone fits none."""
        if not (words := re.findall(r"\w+", text)):
            return np.full(len(self.ids[way]), not text.strip())
        gap = r"[^\p{L}\p{N}_]"
        pattern = f"(^|{gap}){(gap + '+').join(words)}({gap}|$)"
        has = pc.match_substring_regex(self.texts["t2i"], pattern, ignore_case=True)
        return self._means(way, np.asarray(has)) > 0

    # --- Pictures

    def image_file(self, row: int) -> Path:
        """The file of an image."""
        return image_path(self._raw, self._files[row].as_py(), self._folder)

    def model_folder(self, method: str) -> Path:
        """The folder of a method's trained model.

        Raises:
            DataError: the method is none of these results, or has no trained model here.
        """
        trained = [name for name in self.methods if self.layout.model(self.dataset, name).is_dir()]
        if method not in trained:
            raise DataError(f"'{method}' is no trained model here{nearest(method, trained)}")
        return self.layout.model(self.dataset, method)

    def explain(self, method: str, picture: Image.Image, text: str) -> Explanation:
        """Why a picture and a text have their score. The model is loaded when it is first asked.

        Raises:
            ManyMatchError: the model is not here, or cannot read pictures.
        """
        folder = self.model_folder(method)
        with self._explaining:
            if method not in self._models:
                from manymatch.model.model import load  # torch takes seconds to import

                say(f"loading {folder}")
                self._models[method] = load(folder)
            return self._models[method].explain(picture, text)


def read_methods(layout: Layout, dataset: str) -> list[Method]:
    """The results with the queries that most results have, best first."""
    found = []
    for path in sorted((layout.reports / "results" / dataset).glob("*.json")):
        files = layout.result(dataset, path.stem)
        try:
            ways = {way: Ranked(files.run / f"{way}.parquet") for way in WAYS}
            origin = Provenance.read(files.provenance)
            found.append(Method(path.stem, Metrics.read(files.full), origin, ways))
        except ManyMatchError as error:
            say(f"left out: {path.stem}: {error}")
    if not found:
        raise DataError(
            f"{dataset}: no results to explore in {layout.reports / 'runs' / dataset}. Run 'dvc "
            "repro', or 'manymatch evaluate DATASET PRESET' for a trained model"
        )
    found.sort(key=lambda method: (-method.metrics.rsum, method.name))
    asked = [[ranked.ids for ranked in method.ways.values()] for method in found]
    alike = [[one for one, ids in zip(found, asked, strict=True) if ids == own] for own in asked]
    kept = max(alike, key=len)  # of equally large ones the first, which has the highest rsum
    for method in found:
        if method not in kept:
            say(f"left out: {method.name} has other queries than {kept[0].name}")
    return kept
