"""Untrained models on shards of two kinds of features, and the stages run on them."""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from hashed_files import edit
from tiny_data import TinyData, make_data
from untrained import save_untrained

from manymatch.config.layout import Layout
from manymatch.datasets.base import RELEVANCE
from manymatch.evaluation import ensemble, evaluate
from manymatch.evaluation.split_results import EvaluationOptions
from manymatch.model import embed
from manymatch.model.checkpoint import load_model
from manymatch.shards.read import batches


@dataclass(frozen=True)
class Models:
    """Untrained models on shards of two kinds of features, 8 and 6 wide."""

    out: Path
    shards: dict[str, Path]

    def make(self, name, kind="vsepp", seed=0, width=8):
        data = TinyData(self.out / ("grid" if width == 8 else "narrow"))
        save_untrained(self.out / "models" / name, data, kind, seed=seed)
        return name

    def member(self, name):
        folder = self.out / "models" / name
        return folder, self.shards[load_model(folder)[1].features]

    def ensemble(self, *names):
        members = [self.member(name) for name in names]
        return self._run(ensemble.ensemble, members, name="+".join(names))

    def rerank(self, *names):
        members = [self.member(name) for name in names]
        return self._run(ensemble.rerank, members, name="+".join(names))

    def evaluate(self, name):
        return self._run(partial(evaluate.evaluate, *self.member(name)), name=name)

    def _run(self, stage, *models, name):
        written = self.written(name)
        options = EvaluationOptions(self.out / "relevance.parquet", depth=5, samples=3)
        stage(*models, written, options)
        return json.loads(written.full.read_text())

    def written(self, name):
        return Layout(self.out).result("tiny", name)

    def provenance(self, name):
        return json.loads(self.written(name).provenance.read_text())

    def scores(self, name):
        """The whole matrix on the test split."""
        method, parts = self.embedded(name, "test")
        with torch.inference_mode():
            return method.score(parts.images, parts.texts)

    def embedded(self, name, split):
        folder, shards = self.member(name)
        method, _, vocabulary = load_model(folder)
        return method, embed.embed(method, batches(shards, split, vocabulary, 3), "cpu")


def make_models(folder):
    """The shards of both kinds, without any model yet."""
    shards = {}
    for features, width in (("grid", 8), ("narrow", 6)):
        (folder / features).mkdir()
        data = make_data(folder / features, width=width, variable=True)
        shards[features] = data.write_shards()
        edit(shards[features] / "index.json", features=features)
    schema = RELEVANCE.with_metadata({"complete": "true"})
    judged = [{"image_id": "test.0", "caption_id": "test.1#0"}]
    pq.write_table(pa.Table.from_pylist(judged, schema=schema), folder / "relevance.parquet")
    return Models(folder, shards)
