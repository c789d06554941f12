"""The protocols as tasks of mteb, and a trained model as a model of mteb (the extra `mteb`)."""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, Image
from mteb.abstasks import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models import ModelMeta
from mteb.models.model_meta import ScoringFunction
from mteb.types import PromptType
from torch import Tensor

from manymatch.config.layout import Layout
from manymatch.datasets.base import caption_columns
from manymatch.evaluation.external.split_table import SplitTable, read_split
from manymatch.evaluation.protocols import coco, suite
from manymatch.evaluation.protocols.ranked_split import DoesNotApply
from manymatch.evaluation.protocols.recall import ranks_of_relevant
from manymatch.evaluation.protocols.relevance import read_judgments
from manymatch.evaluation.ranking.metrics import RelevantRanks, multi_match_metrics, recall_metrics
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.model import Model
from manymatch.model.scores import SCORES_AT_ONCE
from manymatch.similarities.blocks import runs
from manymatch.util.errors import ConfigError, DataError, nearest
from manymatch.util.json_file import content_hash
from manymatch.util.parquet_file import read_table
from manymatch.util.progress import say

MULTI = "multi"
"""The protocol of annotated and judged pairs, by its key in a metrics file."""
COCO = {"eccv_caption": "eccv_gts", "cxc": "cxc_gts"}
"""COCO's protocols, and where the package `eccv_caption` has the positives of each."""
_MOST_PAIRS = 10_000_000
"""Pairs of a query and an item of which a task keeps all scores: about 2 GB in mteb's dictionaries.
Of more pairs mteb keeps the best 1,000 items of each query."""

Positives = dict[str, dict[str, int]]
"""The positives of each query, as mteb has them: `{query: {item: 1}}`."""


def tasks(
    dataset: str, protocols: Sequence[str] = (), *, root: str | Path = "", split: str = "test"
) -> "list[ProtocolTask]":
    """The tasks of a data set for `mteb.evaluate`: `i2t` and `t2i` of each protocol.

    Args:
        dataset: a data set whose caption table and image files are in the checkout.
        protocols: `pairs` (the annotated pairs), `multi` (annotated and judged pairs),
            `eccv_caption` or `cxc`; none: those that the data set has.
        root: the folder of the checkout. Nothing is downloaded.
        split: train, validation or test.

    Raises:
        ConfigError: there is no such protocol.
        DataError: a file is missing, or a table lacks what a protocol in `protocols` needs.
    """
    known = (suite.PAIRS, MULTI, *COCO)
    for name in protocols:
        if name not in known:
            raise ConfigError(f"no task of the protocol '{name}'{nearest(name, known)}")
    layout = Layout(Path(root).absolute())
    table = read_split(layout.captions(dataset), split)
    sides = _sides(layout, dataset, table)
    own = {suite.PAIRS, MULTI, *(protocol.name for protocol in suite.dataset_protocols(dataset))}
    made: list[ProtocolTask] = []
    for name in protocols or [name for name in known if name in own]:
        try:
            positives = _positives(name, table, layout.relevance(dataset))
        except DoesNotApply as reason:
            if protocols:
                raise
            say(f"{dataset}: left out {name}: {reason}")
            continue
        for way, (queries, items) in sides.items():
            shown = {"captions": sides["i2t"][1]["text"][:], "positives": positives[way]}
            metadata = TaskMetadata(
                name=f"{dataset}-{name}-{way}",
                description=f"The protocol '{name}' of ManyMatch on {dataset}.",
                dataset={"path": dataset, "revision": content_hash(shown)},
                type="Any2AnyRetrieval",
                category=way,
                modalities=["image", "text"],
                eval_splits=[split],
                eval_langs=["eng-Latn"],
                main_score="map_at_r" if name in (MULTI, "eccv_caption") else "r1",
            )
            # mteb takes metadata from the class of a task.
            kind = type(metadata.name, (ProtocolTask,), {"metadata": metadata})
            made.append(kind(queries, items, positives[way]))
    return made


def _sides(layout: Layout, dataset: str, table: SplitTable) -> dict[str, tuple[Dataset, Dataset]]:
    """Queries and items of `i2t` and `t2i`. An image is read from its file when it is embedded."""
    columns = caption_columns("image_id", "caption_id", "caption", "file")
    rows = read_table(layout.captions(dataset), columns).to_pylist()
    captions = {row["caption_id"]: row["caption"] for row in rows}
    names = {row["image_id"]: row["file"] for row in rows}
    files = [layout.raw(dataset) / names[name] for name in table.image_ids]
    if missing := next((file for file in files if not file.is_file()), None):
        raise DataError(f"{missing}: no such file, and models of mteb embed image files")
    ids = {"id": table.image_ids, "image": [*map(str, files)]}
    images = Dataset.from_dict(ids).cast_column("image", Image())
    ids = {"id": table.caption_ids, "text": [captions[name] for name in table.caption_ids]}
    texts = Dataset.from_dict(ids)
    return {"i2t": (images, texts), "t2i": (texts, images)}


def _positives(protocol: str, table: SplitTable, relevance: Path) -> dict[str, Positives]:
    """The positives of `i2t` and `t2i`, of the queries that the protocol counts."""
    images, captions = table.image_ids, table.caption_ids
    if protocol in COCO:
        judged = getattr(coco.judgments(), COCO[protocol])
        return {
            "i2t": _numbered(judged["i2t"], images, captions),
            "t2i": _numbered(judged["t2i"], captions, images),
        }
    pairs = counted = torch.stack([table.image_index, torch.arange(len(captions))], 1)
    if protocol == MULTI:
        judgments = read_judgments(relevance, images, captions, table.image_index)
        if not judgments:
            raise DoesNotApply("no pair beyond the annotated pairs is judged")
        counted = pairs if judgments.complete else judgments.extra
        pairs = torch.cat([pairs, judgments.extra])
    return {
        "i2t": _by_query(pairs, counted, images, captions),
        "t2i": _by_query(pairs.flip(1), counted.flip(1), captions, images),
    }


def _by_query(
    pairs: Tensor, counted: Tensor, queries: Sequence[str], items: Sequence[str]
) -> Positives:
    """The positives among `pairs (p, 2)` (query, item) of the queries of `counted (c, 2)`."""
    positives: Positives = {queries[query]: {} for query in counted[:, 0].unique().tolist()}
    for query, item in pairs.tolist():
        if queries[query] in positives:
            positives[queries[query]][items[item]] = 1
    return positives


def _numbered(
    judged: Mapping[int, Iterable[int]], queries: Sequence[str], items: Sequence[str]
) -> Positives:
    """The positives of COCO's own numbers, with which the ids end."""
    query_ids, item_ids = (
        {int(match[0]): name for name in ids if (match := re.search("[0-9]+$", name))}
        for ids in (queries, items)
    )
    if missing := len(judged.keys() - query_ids.keys()):
        raise DoesNotApply(f"{missing:,} of the {len(judged):,} judged queries are missing")
    return {
        query_ids[query]: {item_ids.get(item, str(item)): 1 for item in positives}
        for query, positives in judged.items()
    }


class ProtocolTask(AbsTaskRetrieval):
    """One direction of a protocol; `tasks` makes it.

    Beside mteb's own numbers the task has those of `manymatch score`, in 0..1: `r1`, `r5`, `r10`,
    `map_at_r` and `r_precision`. In these, ties are pessimistic: a wrong item of equal score ranks
    before a positive. mteb's own numbers order ties by the items' ids.
    """

    def __init__(self, queries: Dataset, items: Dataset, positives: Positives) -> None:
        self._sides, self._positives = (queries, items), positives
        size, most = len(items), max(map(len, positives.values()))
        depth = size if size * len(positives) <= _MOST_PAIRS else min(max(1000, most), size)
        self._whole = depth == size
        self.k_values = (*(k for k in AbsTaskRetrieval.k_values if k < depth), depth)
        super().__init__()

    def load_data(self, *_: Any, **__: Any) -> None:
        """Nothing is downloaded: the tables are here."""
        parts = {"relevant_docs": self._positives, "top_ranked": None}
        parts |= dict(zip(("queries", "corpus"), self._sides, strict=True))
        self.dataset = {"default": {self.metadata.eval_splits[0]: parts}}
        self.data_loaded = True

    def task_specific_scores(
        self, scores: Any, qrels: Positives, results: dict[str, dict[str, float]], **_: Any
    ) -> dict[str, float]:
        """The numbers of `manymatch score`, in 0..1."""
        ranks = [self._ranks(results[query], right) for query, right in qrels.items()]
        recalls = recall_metrics(torch.cat([found.ranks[0, :1] for found in ranks]))
        values = {name: recalls[name] for name in ("r1", "r5", "r10")} | multi_match_metrics(ranks)
        return {name: value / 100 for name, value in values.items()}

    def _ranks(self, found: Mapping[str, float], right: Collection[str]) -> RelevantRanks:
        """The pessimistic ranks of a query's positives `right` among the items that mteb keeps.

        A positive that mteb left out ranks behind all of them, and so does a positive that may tie
        with an item that mteb left out.
        """
        scores = torch.tensor([*found.values()], dtype=torch.float64)
        relevant = torch.tensor([item in right for item in found], dtype=torch.bool)
        if not self._whole and len(scores):
            relevant &= scores > scores.min()
        lost = len(right) - int(relevant.sum())
        scores = torch.cat([scores, scores.new_full((lost,), -torch.inf)])
        relevant = torch.cat([relevant, relevant.new_ones(lost)])
        return ranks_of_relevant(scores[None], relevant[None])


class MtebModel:
    """A trained model as mteb's `SearchProtocol`: retrieval tasks rank by the exact score of the
    model's method, of single vectors or of sets. An image or text is embedded once.

    Args:
        model: what `manymatch.load` gives.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        facts = {
            "name": f"manymatch/{model.facts['dataset']}-{model.preset.method}",
            "revision": hashlib.sha256(model.identity.encode()).hexdigest()[:12],
            "n_parameters": sum(parameter.numel() for parameter in model.method.parameters()),
            "modalities": ["image", "text"],
            "framework": ["PyTorch"],
            "similarity_fn_name": ScoringFunction.CUSTOM,
        }
        self.mteb_model_meta = ModelMeta.create_empty(facts)
        self._known: dict[str, Embeddings] = {}

    def index(
        self, corpus: Dataset, *, task_metadata: TaskMetadata, encode_kwargs: Any, **_: Any
    ) -> None:
        """Embed the items of a task."""
        self._ids = list(corpus["id"])
        self._items = self._embed(corpus, task_metadata, PromptType.document, encode_kwargs)

    def search(
        self,
        queries: Dataset,
        *,
        task_metadata: TaskMetadata,
        top_k: int,
        encode_kwargs: Any,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **_: Any,
    ) -> dict[str, dict[str, float]]:
        """The scores of the `top_k` best items of each query."""
        if top_ranked is not None:
            raise ConfigError(f"{task_metadata.name}: ranks given items. Choose a retrieval task")
        names = list(queries["id"])
        asked = self._embed(queries, task_metadata, PromptType.query, encode_kwargs)
        found = {}
        for run in runs(len(asked), max(1, SCORES_AT_ONCE // len(self._ids))):
            if asked.origin[0] == "images":
                scores = self._model.score(asked.rows(run), self._items, query="image")
            else:
                scores = self._model.score(self._items, asked.rows(run), query="text").T
            best = scores.topk(min(top_k, len(self._ids)))
            for name, items, values in zip(names[run], best.indices, best.values, strict=True):
                ids = [self._ids[item] for item in items.tolist()]
                found[name] = dict(zip(ids, values.tolist(), strict=True))
        return found

    def _embed(
        self, rows: Dataset, metadata: TaskMetadata, side: PromptType, options: Mapping[str, Any]
    ) -> Embeddings:
        kinds = metadata.get_modalities(side)
        if kinds not in (["image"], ["text"]):
            raise ConfigError(f"{metadata.name}: one item is {' and '.join(kinds)}. Give one kind")
        images = kinds == ["image"]
        raw = rows.cast_column("image", Image(decode=False)) if images else rows
        keys = [hashlib.sha256(f"{kinds}{item}".encode()).hexdigest() for item in raw[kinds[0]]]
        new = [*{key: row for row, key in enumerate(keys) if key not in self._known}.values()]
        if new:
            encode = self._model.encode_images if images else self._model.encode_texts
            made = encode(iter(rows.select(new)[kinds[0]]), options.get("batch_size", 32))
            self._known |= {keys[row]: made.rows(slice(i, i + 1)) for i, row in enumerate(new)}
        return Embeddings.join([self._known[key] for key in keys])
