"""What the explorer knows: the methods' rankings of one split, its captions, and who judged what.

The queries of a direction are a table, so that filtering and sorting 25,000 queries of nine methods
takes milliseconds. Files are read when they are first used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock, RLock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from PIL import Image

from manymatch.config.layout import Layout
from manymatch.datasets.base import caption_columns
from manymatch.datasets.image_files import image_path, read_image_folder
from manymatch.evaluation.votes import Pair, Votes, majority, read_votes, record
from manymatch.model.answer import Explanation
from manymatch.results.metrics import Metrics, Provenance
from manymatch.results.ranked import Ranked
from manymatch.results.runs import WAYS, Direction
from manymatch.util.errors import DataError, ManyMatchError
from manymatch.util.parquet_file import table_faults
from manymatch.util.progress import say

MARKS = ("own", "true", "wrong", "unjudged")
"""`results.retrieval.Mark` by number."""
OWN, TRUE, WRONG, UNJUDGED = range(4)
ITEMS: dict[Direction, Direction] = {"i2t": "t2i", "t2i": "i2t"}
"""The direction in which the items of a direction ask."""


class Method(NamedTuple):
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
        names = "image_id", "caption_id", "caption", "file"
        path = layout.captions(dataset)
        with table_faults(path, "captions"):
            table = pq.read_table(
                path, columns=[*names], filters=[("split", "=", self.split)]
            ).cast(caption_columns(*names))
        rows = pc.index_in(self.ids["t2i"], value_set=table["caption_id"].combine_chunks())
        table = table.take(pc.fill_null(rows, 0))
        image_of = pc.index_in(table["image_id"].combine_chunks(), value_set=self.ids["i2t"])
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
    def _relevance(self) -> tuple[dict[int, bool], bool]:
        """The pairs of the data set's table by key, and whether all true pairs are known."""
        path = self.layout.relevance(self.dataset)
        if not path.is_file():
            return {}, False
        with table_faults(path, "captions"):
            table = pq.read_table(path)
        ids = (table[name].to_pylist() for name in ("image_id", "caption_id"))
        told = "relevant" in table.column_names
        answers = table["relevant"].to_pylist() if told else [True] * len(table)
        pairs = dict(zip(self.keys([*zip(*ids, strict=True)]).tolist(), answers, strict=True))
        return pairs, (table.schema.metadata or {}).get(b"complete") == b"true"

    def _take(self, votes: Votes) -> None:
        """Take over what people judged here, which counts more than the data set's table."""
        voted = majority(votes)
        pairs, self.complete = self._relevance
        pairs = pairs | dict(zip(self.keys([*voted]).tolist(), voted.values(), strict=True))
        self.true, self.false = (
            np.array([key for key, said in pairs.items() if said == answer and key >= 0], np.int64)
            for answer in (True, False)
        )
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

    def keys(self, pairs: Sequence[Pair]) -> np.ndarray:
        """The keys of pairs of ids; -1 for a pair of another split and for an annotated pair."""
        image, caption = (
            np.asarray(
                pc.fill_null(
                    pc.index_in(pa.array([pair[i] for pair in pairs], pa.string()), ids), -1
                ),
                dtype=np.int64,
            )
            for i, ids in enumerate((self.ids["i2t"], self.ids["t2i"]))
        )
        other = (image >= 0) & (caption >= 0) & (self.image_of[caption] != image)
        return np.where(other, self.key(image, caption), -1)

    def marks(self, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
        """The `MARKS` of pairs of rows, as numbers; both arrays have one shape."""
        keys = self.key(images, captions)
        found = np.full(keys.shape, WRONG if self.complete else UNJUDGED, dtype=np.int8)
        found[np.isin(keys, self.true)], found[np.isin(keys, self.false)] = TRUE, WRONG
        found[self.image_of[captions] == images] = OWN
        return found

    def pairs(self, way: Direction, queries: np.ndarray, items: np.ndarray) -> tuple[Any, Any]:
        """Queries and items of a way as images and captions, or images and captions as queries and
        items."""
        return (queries, items) if way == "i2t" else (items, queries)

    def annotated(self, way: Direction, items: np.ndarray) -> np.ndarray:
        """Which `items (q, k)` are annotated pairs with their query."""
        own: np.ndarray = (
            self.image_of[items] == np.arange(len(items))[:, None]
            if way == "i2t"
            else items == self.image_of[:, None]
        )
        return own

    # --- The queries

    def table(self, way: Direction, whole: bool = True) -> pa.Table:
        """A row for each query of a direction.

        The columns are `row`, `id`, `text`, `positives` (the number of true items), `words` and,
        if there are scene graphs, `objects` (of an image the mean of its captions), `spread` (the
        largest rank over the smallest), and for each method `rank_METHOD` (of the best annotated
        item), `first_METHOD` (the mark of the first item) and `judged_METHOD` (the rank of the best
        annotated or judged true item; None: beyond the kept depth). The last two need all items and
        scores, which take a second to read: without `whole` they are there if they were read.
        """
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
        columns |= self._sizes[way] | {"spread": (ranks.max(0) / ranks.min(0)).round(4)}
        for name, method in self.methods.items():
            ranked = method.ways[way]
            columns[f"rank_{name}"] = ranked.ranks
            if whole:
                first = self.marks(*self.pairs(way, rows, ranked.items[:, 0].astype(np.int64)))
                columns[f"first_{name}"] = pa.array(MARKS).take(pa.array(first))
                best = self._best_ranks(ranked, way, *true)
                columns[f"judged_{name}"] = pa.array(best, mask=best > ranked.items.shape[1])
        return pa.table(columns)

    def _best_ranks(
        self, ranked: Ranked, way: Direction, query: np.ndarray, item: np.ndarray
    ) -> np.ndarray:
        """`(q,)` the rank of each query's best annotated or judged true item (the pairs of `query`
        and `item`); one more than the depth of the table if none of them is in the table.

        As everywhere, an item that is not true and has the same score counts before. If the last
        item of the table has that score, more such items may follow: then the rank is the best
        annotated item's, or one more than the depth.
        """
        items, scores, depth = ranked.items, ranked.scores, ranked.items.shape[1]
        true = self.annotated(way, items)
        hit, place = np.nonzero(items[query] == item[:, None].astype(np.int32))
        true[query[hit], place] = True
        level = scores[np.arange(len(items)), true.argmax(1)]
        best = ((scores >= level[:, None]) & ~true).sum(1) + 1
        cut = (level == scores[:, -1]) & (depth < len(self.ids[ITEMS[way]]))
        return np.where(~true.any(1) | cut, np.minimum(ranked.ranks, depth + 1), best)

    @cached_property
    def _sizes(self) -> dict[Direction, dict[str, np.ndarray]]:
        """The numbers of words, and of objects in scene graphs if they are here."""
        found: dict[Direction, dict[str, np.ndarray]] = {way: {} for way in WAYS}
        words = pc.utf8_split_whitespace(self.texts["t2i"])
        parts, path = {"words": words}, self.layout.scene_graphs(self.dataset)
        if path.is_file():
            with table_faults(path, "scene_graphs"):
                graphs = pq.read_table(path, columns=["caption_id", "objects"])
            rows = pc.index_in(self.ids["t2i"], value_set=graphs["caption_id"].combine_chunks())
            parts["objects"] = graphs["objects"].take(rows)
        for name, lists in parts.items():
            own = np.asarray(pc.list_value_length(lists), dtype=np.float64)
            sums = np.bincount(self.image_of, own, len(self.captions_of))
            found["t2i"][name], found["i2t"][name] = own, (sums / self.captions_of).round(1)
        return found

    def with_words(self, way: Direction, text: str) -> np.ndarray:
        """`(q,)`: whether the caption, or a caption of the image, has the words in this order.
        A blank text fits all; a text of signs alone fits none."""
        if not text.strip():
            return np.full(len(self.ids[way]), True)
        gap, words = r"[^\p{L}\p{N}_]", re.findall(r"\w+", text)
        pattern = f"(^|{gap}){(gap + '+').join(words)}({gap}|$)"
        if not words:
            return np.full(len(self.ids[way]), False)
        has = np.asarray(pc.match_substring_regex(self.texts["t2i"], pattern, ignore_case=True))
        return has if way == "t2i" else np.bincount(self.image_of, has, len(self.captions_of)) > 0

    # --- Pictures

    def image_file(self, row: int) -> Path:
        """The file of an image."""
        return image_path(self._raw, self._files[row].as_py(), self._folder)

    def explain(self, method: str, picture: Image.Image, text: str) -> Explanation:
        """Why a picture and a text have their score. The model is loaded when it is first asked.

        Raises:
            ManyMatchError: the model is not here, or cannot read pictures.
        """
        folder = self.layout.model(self.dataset, method)
        if not folder.is_dir():
            raise DataError(f"{method}: no single trained model, so no score can be explained")
        with self._explaining:
            if method not in self._models:
                from manymatch.model.model import load  # torch takes seconds to import

                say(f"loading {folder}")
                self._models[method] = load(folder)
            found: Explanation = self._models[method].explain(picture, text)
            return found


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
    groups = [[name for name, other in enumerate(asked) if other == ids] for ids in asked]
    largest = max(groups, key=len)  # of equally large ones the first, which has the highest rsum
    for number, method in enumerate(found):
        if number not in largest:
            say(f"left out: {method.name} has other queries than {found[largest[0]].name}")
    return [found[number] for number in largest]
