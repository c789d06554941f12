"""What the explorer knows: the methods' rankings of one split, its captions, and who judged what.

Everything is a column of numbers with one entry for each query, so that filtering and sorting
25,000 queries of nine methods takes milliseconds. Columns are read when they are first used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import product
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
from manymatch.evaluation.votes import Votes, majority, read_votes, record
from manymatch.model.answer import Explanation
from manymatch.results.ranked import Ranked
from manymatch.results.runs import WAYS, Direction
from manymatch.search.explore.evaluated import read_methods
from manymatch.util.errors import DataError
from manymatch.util.parquet_file import table_faults
from manymatch.util.progress import say

MARKS = ("own", "true", "wrong", "unjudged")
"""`results.retrieval.Mark` by number."""
OWN, TRUE, WRONG, UNJUDGED = range(4)


class Judged(NamedTuple):
    """The judged pairs besides annotated ones: `keys` (image * captions + caption, ascending), and
    whether each pair is `true`."""

    keys: np.ndarray
    true: np.ndarray


class Explorer:
    """The results of the data set `dataset` in a project.

    Rows number the images and captions of the split; a "way" is `i2t` (images ask) or `t2i`.

    Raises:
        DataError: there is no result, or the tables do not fit each other.
    """

    def __init__(self, layout: Layout, dataset: str) -> None:
        self.layout, self.dataset = layout, dataset
        self._lock, self._explaining, self._warming, self._voting = RLock(), Lock(), Lock(), Lock()
        self._models: dict[str, Any] = {}
        self.agreed: dict[tuple[Direction, int], Any] = {}
        """What `lists.unjudged` found, by way and number of first items."""
        self._best: dict[tuple[str, Direction], np.ndarray] = {}
        self.methods = {method.name: method for method in read_methods(layout, dataset)}
        first = next(iter(self.methods.values()))
        self.split = first.provenance.split
        ids = {way: ranked.ids for way, ranked in first.ways.items()}
        self.ids: dict[Direction, Sequence[str]] = {
            way: own.to_pylist() for way, own in ids.items()
        }
        names = "image_id", "caption_id", "caption", "file"
        path = layout.captions(dataset)
        with table_faults(path, "captions"):
            table = pq.read_table(
                path, columns=[*names], filters=[("split", "=", self.split)]
            ).cast(caption_columns(*names))
        rows = pc.index_in(ids["t2i"], value_set=table["caption_id"].combine_chunks())
        table = table.take(pc.fill_null(rows, 0))
        image_of = pc.index_in(table["image_id"].combine_chunks(), value_set=ids["i2t"])
        if rows.null_count or image_of.null_count:
            raise DataError(f"{path}: lacks captions of the results. Evaluate the models again")
        self.captions: pa.Array = table["caption"].combine_chunks()
        self._files: pa.Array = table["file"].combine_chunks()
        self.image_of = np.asarray(image_of, dtype=np.int64)
        self.first_caption = np.searchsorted(self.image_of, np.arange(len(self.ids["i2t"])))
        self.captions_of = np.bincount(self.image_of, minlength=len(self.ids["i2t"]))
        self.votes: Votes = read_votes(layout.votes(dataset))

    @cached_property
    def words(self) -> dict[Direction, np.ndarray]:
        """The number of words of each caption; of an image the mean of its captions."""
        return self._both(pc.list_value_length(pc.utf8_split_whitespace(self.captions)))

    @cached_property
    def objects(self) -> dict[Direction, np.ndarray] | None:
        """The number of objects in each caption's scene graph; of an image the mean of its
        captions. None: the data set has no scene graphs here."""
        path = self.layout.scene_graphs(self.dataset)
        if not path.is_file():
            return None
        with table_faults(path, "scene_graphs"):
            table = pq.read_table(path, columns=["caption_id", "objects"])
        ids = pa.array(self.ids["t2i"], pa.string())
        rows = pc.index_in(ids, value_set=table["caption_id"].combine_chunks())
        return self._both(pc.list_value_length(table["objects"].take(rows)))

    def _both(self, values: Any) -> dict[Direction, np.ndarray]:
        own = np.asarray(values, dtype=np.float64)
        sums = np.bincount(self.image_of, own, len(self.captions_of))
        return {"t2i": own, "i2t": (sums / self.captions_of).round(1)}

    @cached_property
    def _tokens(self) -> pa.Array:
        """Each caption as its words in lower case, with a space around each word."""
        return pa.array([_tokens(text) for text in self.captions.to_pylist()])

    def with_words(self, way: Direction, text: str) -> np.ndarray:
        """`(q,)`: whether the caption, or a caption of the image, has the words in this order."""
        has = np.asarray(pc.match_substring(self._tokens, _tokens(text)))
        return has if way == "t2i" else np.bincount(self.image_of, has, len(self.captions_of)) > 0

    @property
    def complete(self) -> bool:
        """Whether every true pair of the data set is known."""
        return self._relevance[1]

    @cached_property
    def _relevance(self) -> tuple[dict[int, bool], bool]:
        """The pairs of the data set's table by key, and whether all true pairs are known."""
        path = self.layout.relevance(self.dataset)
        if not path.is_file():
            return {}, False
        with table_faults(path, "captions"):
            table = pq.read_table(path)
        keys = self._keys(table["image_id"], table["caption_id"])
        told = "relevant" in table.column_names
        answers = np.asarray(table["relevant"] if told else np.ones(len(table)), dtype=bool)
        pairs = dict(zip(keys[keys >= 0].tolist(), answers[keys >= 0].tolist(), strict=True))
        return pairs, (table.schema.metadata or {}).get(b"complete") == b"true"

    def _keys(self, images: Any, captions: Any) -> np.ndarray:
        """The keys of pairs of ids; -1 for a pair of another split and for an annotated pair."""
        rows = [
            np.asarray(pc.fill_null(pc.index_in(ids, value_set=pa.array(known, pa.string())), -1))
            for ids, known in ((images, self.ids["i2t"]), (captions, self.ids["t2i"]))
        ]
        image, caption = (row.astype(np.int64) for row in rows)
        other = (image >= 0) & (caption >= 0) & (self.image_of[caption] != image)
        return np.where(other, self.key(image, caption), -1)

    def key(self, image: np.ndarray, caption: np.ndarray) -> np.ndarray:
        """The number of a pair of rows."""
        return image * len(self.ids["t2i"]) + caption

    @property
    def judged(self) -> Judged:
        """All judged pairs; what people judged here counts more than the data set's table."""
        with self._lock:
            if self._judged is None:
                voted = majority(self.votes)
                images, captions = (
                    pa.array([pair[i] for pair in voted], pa.string()) for i in (0, 1)
                )
                keys = self._keys(images, captions).tolist()
                here = dict(zip(keys, voted.values(), strict=True))
                here.pop(-1, None)
                pairs = self._relevance[0] | here
                ordered = np.array(sorted(pairs), dtype=np.int64)
                answers = np.array([pairs[key] for key in ordered.tolist()], dtype=bool)
                self._judged = Judged(ordered, answers)
            return self._judged

    _judged: Judged | None = None

    def vote(self, image: int, caption: int, relevant: bool | None, annotator: str) -> None:
        """Write what an annotator says about a pair of rows; None: skipped."""
        pair = self.ids["i2t"][image], self.ids["t2i"][caption]
        with self._voting:  # else an earlier vote could replace a later one in memory
            votes = record(self.layout.votes(self.dataset), pair, relevant, annotator)
            with self._lock:
                self.votes, self._judged = votes, None
                self._best.clear()

    def marks(self, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
        """The `MARKS` of pairs of rows, as numbers; both arrays have one shape."""
        judged, keys = self.judged, self.key(images, captions)
        found = np.full(keys.shape, WRONG if self.complete else UNJUDGED, dtype=np.int8)
        if len(judged.keys):
            place = np.searchsorted(judged.keys, keys).clip(max=len(judged.keys) - 1)
            known = judged.keys[place] == keys
            found[known] = np.where(judged.true[place[known]], TRUE, WRONG)
        found[self.image_of[captions] == images] = OWN
        return found

    def pairs(self, way: Direction, queries: np.ndarray, items: np.ndarray) -> tuple[Any, Any]:
        """Queries and items of a way as images and captions."""
        return (queries, items) if way == "i2t" else (items, queries)

    def annotated(self, way: Direction, items: np.ndarray) -> np.ndarray:
        """Which `items (q, k)` are annotated pairs with their query."""
        if way == "i2t":
            own: np.ndarray = self.image_of[items] == np.arange(len(items))[:, None]
            return own
        return items == self.image_of[:, None]

    def voted(self, annotator: str, skipped: bool) -> np.ndarray:
        """The keys of the pairs that an annotator judged here, or with `skipped` also skipped."""
        own = self.votes.get(annotator, {}).items()
        pairs = [pair for pair, vote in own if skipped or vote.relevant is not None]
        images, captions = (pa.array([pair[i] for pair in pairs], pa.string()) for i in (0, 1))
        return self._keys(images, captions)

    def first_marks(self, method: str, way: Direction, rows: np.ndarray) -> np.ndarray:
        """The mark of the first item of each of these queries."""
        first = self.methods[method].ways[way].items[rows, 0].astype(np.int64)
        return self.marks(*self.pairs(way, rows, first))

    def positives(self, way: Direction) -> np.ndarray:
        """`(q,)` the number of annotated and judged true items of each query."""
        judged = self.judged
        image, caption = np.divmod(judged.keys[judged.true], len(self.ids["t2i"]))
        query = image if way == "i2t" else caption
        own = self.captions_of if way == "i2t" else np.ones(len(self.ids["t2i"]), dtype=np.int64)
        return own + np.bincount(query, minlength=len(own))

    def best_ranks(self, method: str, way: Direction) -> np.ndarray:
        """`(q,)` the rank of each query's best annotated or judged true item; one more than the
        depth of the table if none of them is in the table.

        As everywhere, an item that is not true and has the same score counts before. If the last
        item of the table has that score, more such items may follow: then the rank is the best
        annotated item's, or one more than the depth.
        """
        with self._lock:
            if (method, way) not in self._best:
                self._best[method, way] = self._best_ranks(self.methods[method].ways[way], way)
            return self._best[method, way]

    def _best_ranks(self, ranked: Ranked, way: Direction) -> np.ndarray:
        depth = ranked.items.shape[1]
        best = np.minimum(ranked.ranks, depth + 1)
        image, caption = np.divmod(self.judged.keys[self.judged.true], len(self.ids["t2i"]))
        query, item = (image, caption) if way == "i2t" else (caption, image)
        hits = ranked.items[query] == item[:, None].astype(np.int32)
        place = np.where(hits.any(1), hits.argmax(1) + 1, depth + 1)
        np.minimum.at(best, query, place)
        # Without ties these places are the ranks.
        rows = np.flatnonzero(best <= depth)
        level = ranked.scores[rows, best[rows] - 1]
        gallery = len(self.ids["t2i" if way == "i2t" else "i2t"])
        cut = rows[(level == ranked.scores[rows, -1]) & (depth < gallery)]
        near = np.stack([best[rows] - 2, best[rows]]).clip(0, depth - 1)
        ties = (ranked.scores[rows, near] == level) & (near != best[rows] - 1)
        rows, level = rows[ties.any(0)], level[ties.any(0)]
        items = ranked.items[rows].astype(np.int64)
        marks = self.marks(*self.pairs(way, np.broadcast_to(rows[:, None], items.shape), items))
        others = (marks != OWN) & (marks != TRUE)
        best[rows] = ((ranked.scores[rows] >= level[:, None]) & others).sum(1) + 1
        best[cut] = np.minimum(ranked.ranks[cut], depth + 1)
        return best

    def warm(self) -> None:
        """Read what filters and sorts need, once, so that no later request waits for the files."""
        with self._warming:
            if not self.is_warm:
                for way, name in product(WAYS, self.methods):
                    self.best_ranks(name, way)
                self.objects, self._tokens, self.is_warm = self.objects, self._tokens, True

    is_warm, fault = False, ""
    """Whether `warm` has read all, and why its last call failed."""

    def image_file(self, row: int) -> Path:
        """The file of an image."""
        file = Path(self._files[int(self.first_caption[row])].as_py())
        if file.is_absolute() or ".." in file.parts:
            raise DataError(f"{file}: not a file of the data set")
        return self.layout.raw(self.dataset) / file

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


def _tokens(text: str) -> str:
    words = re.findall(r"\w+", text.lower())
    return f" {' '.join(words)} "
