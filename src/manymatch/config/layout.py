"""Where every file lies: one function for each kind of file, so that stages and dvc.yaml agree."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ResultFiles:
    """The files of one evaluated result."""

    full: Path
    """All metrics, JSON."""
    metrics: Path
    """The few metrics that DVC's tables show, JSON."""
    provenance: Path
    """The settings, data and code of the result, JSON."""
    run: Path
    """Folder of the run files, sample queries and embeddings."""
    machine: Path
    """What the stages used on this machine (`results.machine`), JSON; no stage's output."""

    @classmethod
    def inside(cls, folder: Path) -> "ResultFiles":
        """The files of a result that has a folder of its own."""
        names = ("results.json", "metrics.json", "provenance.json", "run", "machine.json")
        return cls(*(folder / name for name in names))


class _Place:
    """A file or folder with a fixed path below the root of a `Layout`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, layout: "Layout", owner: type) -> Path:
        return layout.root / self._path


@dataclass(frozen=True)
class Layout:
    """The folders of a checkout, relative to its root (`dvc.yaml` names the same paths)."""

    root: Path = Path()

    params = _Place("params.yaml")
    presets = _Place("presets")
    reports = _Place("reports")
    plans = _Place("experiments")
    """The files that describe experiments."""
    plots_page = _Place(".dvc/plots.html")
    """The page that `dvc plots show` fills."""
    code = _Place("data/code")
    """The hashes of the code that each stage can reach."""
    shard_cache = _Place("data/cache")
    """Shards that were fetched from URLs; no stage's output."""
    indexes = _Place("data/indexes")
    """The indexes of pictures or captions (`search.index`), each in a folder of its name."""
    production = _Place("production.json")
    """The versions of models that were promoted (`model.versions`)."""
    models = _Place("models")

    def raw(self, dataset: str) -> Path:
        return self.root / "data" / "raw" / dataset

    def captions(self, dataset: str) -> Path:
        return self.root / "data" / "captions" / f"{dataset}.parquet"

    def vocabulary(self, dataset: str) -> Path:
        return self.root / "data" / "captions" / f"{dataset}.vocabulary.json"

    def relevance(self, dataset: str) -> Path:
        return self.root / "data" / "captions" / f"{dataset}.relevance.parquet"

    def votes(self, dataset: str) -> Path:
        """The pairs that people judged in the explorer; a file of the user, no stage's output."""
        return self.root / "judgments" / f"{dataset}.csv"

    def features(self, dataset: str, features: str) -> Path:
        return self.root / "data" / "features" / dataset / f"{features}.h5"

    def scene_graphs(self, dataset: str) -> Path:
        return self.root / "data" / "scene_graphs" / f"{dataset}.parquet"

    def shards(self, dataset: str, features: str) -> Path:
        return self.root / "data" / "shards" / dataset / features

    def parts(self, output: Path) -> Path:
        """The parts of a stage's `output`, made on several machines; no stage's output."""
        return self.root / "data" / "parts" / output.relative_to(self.root / "data")

    def model(self, dataset: str, preset: str) -> Path:
        return self.models / dataset / preset

    def checkpoints(self, dataset: str, preset: str) -> Path:
        """Outside the outputs of any stage, because DVC deletes outputs before it runs a stage."""
        return self.models / ".checkpoints" / dataset / preset

    def curves(self, dataset: str, preset: str) -> Path:
        return self.reports / "curves" / dataset / preset

    def result(self, dataset: str, preset: str) -> ResultFiles:
        """The files of a trained model's result, or of an ensemble's."""
        name = f"{preset}.json"
        return ResultFiles(
            full=self.reports / "results" / dataset / name,
            metrics=self.reports / "metrics" / dataset / name,
            provenance=self.reports / "provenance" / dataset / name,
            run=self.run(dataset, preset),
            machine=self.machine(dataset, preset),
        )

    def run(self, dataset: str, preset: str) -> Path:
        return self.reports / "runs" / dataset / preset

    def machine(self, dataset: str, preset: str) -> Path:
        return self.reports / "machine" / dataset / f"{preset}.json"

    def probe(self, dataset: str, preset: str) -> Path:
        return self.reports / "probes" / dataset / f"{preset}.json"

    def experiment(self, name: str) -> Path:
        """The file that describes an experiment."""
        return self.plans / f"{name}.yaml"

    def experiment_runs(self, kind: str) -> Path:
        """The folders of all runs of one kind of experiment; like `checkpoints`, no stage's
        output."""
        return self.models / ".experiments" / kind

    def search_space(self, dataset: str) -> Path:
        """The settings that `tune` searches."""
        return self.plans / "spaces" / f"{dataset}.yaml"

    def tuning(self, dataset: str, preset: str) -> Path:
        return self.reports / "tuning" / dataset / f"{preset}.json"

    def tuned_preset(self, dataset: str, preset: str) -> Path:
        """The preset with the best settings that `tune` found, to be copied over the preset."""
        return self.tuning(dataset, preset).with_suffix(".yaml")

    def efficiency(self, dataset: str) -> Path:
        return self.reports / "efficiency" / f"{dataset}.json"

    def clusters(self, dataset: str, preset: str) -> Path:
        return self.reports / "clusters" / dataset / f"{preset}.json"
