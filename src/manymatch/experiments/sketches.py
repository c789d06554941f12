"""Experiments on sketches (SwAMP, section 5.2): a run trains on some classes, tests on others."""

import shutil
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from manymatch import __version__
from manymatch.config.strict import validate
from manymatch.evaluation.external.arrays import file_of
from manymatch.experiments import sketch_training
from manymatch.experiments.engine import Experiment, Numbers, Row
from manymatch.experiments.grid import ComparedPlan, Point
from manymatch.experiments.sketch_features import DataSettings, files_of, read_data
from manymatch.experiments.sketch_training import SketchSettings
from manymatch.networks.device import pick_device
from manymatch.results.experiments import SketchExperiment
from manymatch.results.machine import Clock
from manymatch.util import files
from manymatch.util.code_hash import code_hash
from manymatch.util.progress import say

RANKS = "ranks.trec"


class SketchPlan(ComparedPlan):
    """The settings of a point are those of `SketchSettings`."""

    experiment: Literal["sketches"]
    dataset: str
    """The name of the data set in published results."""
    data: DataSettings


class SketchesToImages(Experiment[SketchPlan, SketchSettings]):
    """Writes `reports/sketches/NAME.json` and, as run files, the best images of every sketch:
    `reports/runs/sketches/NAME/POINT-SEED.trec`."""

    kind = "sketches"
    plan_type = SketchPlan
    options_of_kind = frozenset({"--device"})
    one_run_a_core = False
    files_of_a_run = (RANKS,)

    def settings(self, point: Point, seed: int) -> SketchSettings:
        return validate(SketchSettings, {**self.plan.set, **point.settings}, "settings")

    def prepare(self) -> None:
        data = read_data(self.plan.data)
        say(f"{self.name}: {len(data.seen)} classes to train on, {len(data.unseen)} unseen classes")
        kinds = {"seen": data.seen, "unseen": data.unseen}
        self.sizes = {"classes": {name: len(classes) for name, classes in kinds.items()}}
        for name, side in (("sketches", data.sketches), ("images", data.images)):
            self.sizes[name] = {
                kind: len(side.of(classes).labels) for kind, classes in kinds.items()
            }
        names = sorted({file_of(text) for text in files_of(self.plan.data)})
        self.hashes = [[file.name, files.sha256(file)] for file in names]

    def inputs(self, settings: SketchSettings) -> dict[str, Any]:
        return {
            "settings": settings.model_dump(mode="json"),
            "data": self.plan.data.model_dump(mode="json"),
            "files": self.hashes,
            "device": pick_device(self.options.device).type,
        }

    def code(self, settings: SketchSettings) -> str:
        return code_hash(f"{sketch_training.__name__}:run")

    def run(self, settings: SketchSettings, seed: int, folder: Path) -> Numbers:
        clock = Clock()
        # The engine has hidden the GPUs that belong to other runs.
        device = pick_device("auto" if self.options.device != "cpu" else "cpu")
        data = _data_of_this_process(self.plan.data)
        numbers = sketch_training.run(settings, data, seed, device, folder / RANKS)
        return {**numbers, "usage": clock.usage(str(device)).model_dump(exclude_none=True)}

    def headline(self, numbers: Numbers) -> str:
        return f"mAP {numbers['map']:.2f} of epoch {numbers['epoch']}"

    def publish(self, rows: Sequence[Row]) -> None:
        with files.replacing(self.layout.run("sketches", self.name)) as folder:
            folder.mkdir()
            for row in rows:
                for run, _ in row.runs:
                    name = f"{quote(row.point.label, safe='')}-{run.seed}.trec"
                    shutil.copyfile(run.folder / RANKS, folder / name)

    def result(self, rows: Sequence[Row]) -> SketchExperiment:
        usages = [numbers["usage"] for row in rows for _, numbers in row.runs]
        peaks = {key: max(usage[key] for usage in usages) for key in usages[0] if "peak" in key}
        result = {
            "name": self.name,
            **self.plan.model_dump(mode="json", include={"about", "dataset", "baseline", "seeds"}),
            **self.sizes,
            "points": [row.as_json("usage") for row in rows],
            "provenance": {
                "files": self.hashes,
                "version": __version__,
                **{key: usages[-1].get(key) for key in ("date", "host", "device", "git_revision")},
                "seconds": round(sum(usage["seconds"] for usage in usages), 1),
                **peaks,
            },
        }
        return SketchExperiment.model_validate(result)


_data_of_this_process = lru_cache(maxsize=1)(read_data)
"""The runs of one process share the features, which may take gigabytes."""
