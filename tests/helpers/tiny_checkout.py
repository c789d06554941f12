"""A checkout with the tiny dataset and two tiny presets, for what trains many models."""

import shutil
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from tiny_data import make_data

from manymatch.config.layout import Layout
from manymatch.config.strict import validate
from manymatch.datasets.base import RELEVANCE
from manymatch.experiments.grid import Options
from manymatch.experiments.presets import PresetExperiment, PresetPlan

PRESET = {
    "method": "vsepp",
    "features": "grid",
    "model": {"size": 8, "word_size": 4, "feature_dropout": 0.1},
    "training": {"epochs": 2, "images_per_batch": 8, "optimizer": {"lr": 0.01}},
}
CORA = {"size": 8, "heads": 2, "word_vectors": "learned", "word_size": 4, "concept_size": 4}


@dataclass(frozen=True)
class Checkout:
    """Its folder, whose data set is `tiny`."""

    layout: Layout

    @property
    def runs(self):
        """The folders of finished runs."""
        return sorted(
            path.parent for path in self.layout.experiment_runs("presets").glob("*/result.json")
        )

    def plan(self, **value):
        """A plan that varies the preset `vsepp`."""
        return validate(PresetPlan, {"dataset": "tiny", "preset": "vsepp", **value}, "test")

    def experiment(self, plan, name="what", **options):
        return PresetExperiment(name, plan, self.layout, Options(**options))


def make_checkout(root, work):
    """Data, presets and params.yaml under `root`, which is empty."""
    layout = Layout(root)
    data = make_data(work, width=8)
    data.write_shards()
    shutil.copytree(data.shards, layout.shards("tiny", "grid"))
    layout.vocabulary("tiny").parent.mkdir()
    shutil.copy(data.vocabulary, layout.vocabulary("tiny"))
    shutil.copy(data.captions, layout.captions("tiny"))
    layout.scene_graphs("tiny").parent.mkdir()
    shutil.copy(data.graphs, layout.scene_graphs("tiny"))
    judged = [{"image_id": "test.0", "caption_id": "test.1#0"}]
    schema = RELEVANCE.with_metadata({"complete": "true"})
    pq.write_table(pa.Table.from_pylist(judged, schema=schema), layout.relevance("tiny"))
    params = {"datasets": ["tiny"], "presets": [], "features": ["grid"]}
    layout.params.write_text(yaml.safe_dump({**params, "sources": {}, "extraction": {}}))
    (layout.presets / "tiny").mkdir(parents=True)
    for name, change in {"vsepp": {}, "cora": {"method": "cora", "model": CORA}}.items():
        text = yaml.safe_dump({**PRESET, **change})
        (layout.presets / "tiny" / f"{name}.yaml").write_text(text)
    return Checkout(layout)
