"""Where everything lies: one function a kind of file, so that stages and dvc.yaml agree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """The folders of a checkout, relative to its root (`dvc.yaml` names the same paths)."""

    root: Path = Path()

    @property
    def params(self) -> Path:
        return self.root / "params.yaml"

    @property
    def presets(self) -> Path:
        return self.root / "presets"

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    def raw(self, dataset: str) -> Path:
        return self.root / "data" / "raw" / dataset

    def captions(self, dataset: str) -> Path:
        return self.root / "data" / "captions" / f"{dataset}.parquet"

    def vocabulary(self, dataset: str) -> Path:
        return self.root / "data" / "captions" / f"{dataset}.vocabulary.json"

    def relevance(self, dataset: str) -> Path:
        return self.root / "data" / "captions" / f"{dataset}.relevance.parquet"

    def features(self, dataset: str, features: str) -> Path:
        return self.root / "data" / "features" / dataset / f"{features}.h5"

    def scene_graphs(self, dataset: str) -> Path:
        return self.root / "data" / "scene_graphs" / f"{dataset}.parquet"

    def shards(self, dataset: str, features: str) -> Path:
        return self.root / "data" / "shards" / dataset / features

    def parts(self, output: Path) -> Path:
        """Of a stage's `output`, made on several machines; itself no stage's output."""
        return self.root / "data" / "parts" / output.relative_to(self.root / "data")

    @property
    def models(self) -> Path:
        return self.root / "models"

    def model(self, dataset: str, method: str) -> Path:
        return self.models / dataset / method

    def checkpoints(self, dataset: str, method: str) -> Path:
        """Outside the outputs of any stage, because DVC deletes those before it runs one."""
        return self.models / ".checkpoints" / dataset / method

    def curves(self, dataset: str, method: str) -> Path:
        return self.reports / "curves" / dataset / method

    def metrics(self, dataset: str, method: str) -> Path:
        return self.reports / "metrics" / dataset / f"{method}.json"

    def provenance(self, dataset: str, method: str) -> Path:
        return self.reports / "provenance" / dataset / f"{method}.json"

    def run(self, dataset: str, method: str) -> Path:
        return self.reports / "runs" / dataset / method

    def study(self, dataset: str, method: str) -> Path:
        return self.reports / "studies" / dataset / f"{method}.json"

    def experiment(self, name: str) -> Path:
        """The file that describes an experiment."""
        return self.root / "experiments" / f"{name}.yaml"

    def experiment_runs(self, kind: str) -> Path:
        """The folders of all runs of one kind of experiment; like `checkpoints`, no stage's
        output."""
        return self.models / ".experiments" / kind

    def efficiency(self, dataset: str) -> Path:
        return self.reports / "efficiency" / f"{dataset}.json"

    def clusters(self, dataset: str, method: str) -> Path:
        return self.reports / "clusters" / dataset / f"{method}.json"
