"""The command `sketches`: every point of an experiment with every seed, as one JSON file.

{"name", "about", "dataset", "baseline", "seeds", "classes": {"seen", "unseen"},
 "sketches": {"seen", "unseen"}, "images": {"seen", "unseen"},
 "points": [{"label", "settings", "runs": [{"seed", "map", "map_at_200", "map_at_200_r",
                                            "p_at_200", "validation", "epoch", "seconds"}]}],
 "provenance": {"files": [[NAME, SHA256]], "version", "git_revision", "device", ...}}
"""

from __future__ import annotations

import functools
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch

from manymatch import __version__
from manymatch.config.layout import Layout
from manymatch.evaluation.external.arrays import file_of
from manymatch.experiments.ablation import kept
from manymatch.experiments.sketches import run
from manymatch.experiments.sketches.data import Data, Side, files_of, read_data
from manymatch.experiments.sketches.settings import SketchExperiment, SketchSettings
from manymatch.experiments.synthetic.plan import settings_of
from manymatch.system import files
from manymatch.system.code_hash import code_hash
from manymatch.system.machine import Clock
from manymatch.system.progress import say


def perform(
    name: str, experiment: SketchExperiment, layout: Layout, device: torch.device = run.CPU
) -> Path:
    """Run what is missing of `experiment` on `device` and write `reports/sketches/NAME.json`
    and the run files `reports/runs/sketches/NAME/POINT-SEED.trec`.

    Finished runs are kept in `models/.sketches`, so that a killed or extended experiment does only
    the rest.

    Raises:
        ConfigError: a point's settings do not fit; DataError: the data (before any training).
    """
    clock = Clock()
    points = settings_of(SketchSettings, experiment)
    data = read_data(experiment.data)
    say(f"{name}: {len(data.seen)} classes to train on, {len(data.unseen)} unseen")
    origin = _origin(experiment)
    known = {"settings": experiment.data.model_dump(mode="json"), "files": origin["files"]}
    place = Place(layout.sketch_runs, layout.run("sketches", name), known, device)
    record = {
        "name": name,
        **experiment.model_dump(mode="json", include={"about", "dataset", "baseline", "seeds"}),
        **_sizes(data),
        "points": [
            _point(label, chosen, data, experiment.seeds, place) for label, chosen in points.items()
        ],
        "provenance": {**origin, **clock.usage(str(device)).model_dump(exclude_none=True)},
    }
    target = layout.sketches(name)
    files.write_json(target, record)
    return target


@dataclass(frozen=True)
class Place:
    """Where runs are kept and where their run files go, what tells the data that they read, and
    what they run on."""

    folder: Path
    ranks: Path
    known: dict[str, Any]
    device: torch.device

    def finished(
        self, settings: SketchSettings, data: Data, seed: int, target: Path
    ) -> dict[str, Any]:
        """The result of a run, now or from before; its run file is copied to `target`."""
        key = kept.key_of(
            settings=settings.model_dump(mode="json"),
            seed=seed,
            data=self.known,
            device=self.device.type,
            code=code_hash(run.__name__),
        )
        ranks = self.folder / f"{key}.trec"
        work = functools.partial(run.run, settings, data, seed, self.device, ranks)
        result = kept.finished(self.folder / f"{key}.json", work)
        with files.replacing(target) as partial:
            shutil.copyfile(ranks, partial)
        return result


def _point(
    label: str, settings: SketchSettings, data: Data, seeds: list[int], place: Place
) -> dict[str, Any]:
    runs = []
    for seed in seeds:
        target = place.ranks / f"{quote(label, safe='')}-{seed}.trec"
        found = place.finished(settings, data, seed, target)
        say(f"{label}, seed {seed}: mAP {found['map']:.2f} of epoch {found['epoch']}")
        runs.append({"seed": seed, **found})
    return {"label": label, "settings": settings.model_dump(mode="json"), "runs": runs}


def _sizes(data: Data) -> dict[str, dict[str, int]]:
    def count(side: Side) -> dict[str, int]:
        return {"seen": len(side.of(data.seen).labels), "unseen": len(side.of(data.unseen).labels)}

    return {
        "classes": {"seen": len(data.seen), "unseen": len(data.unseen)},
        "sketches": count(data.sketches),
        "images": count(data.images),
    }


def _origin(experiment: SketchExperiment) -> dict[str, Any]:
    """The data by name (without folders) and hash, and the code."""
    named = sorted({file_of(text) for text in files_of(experiment.data)})
    return {
        "files": [[file.name, files.sha256(file)] for file in named],
        "version": __version__,
    }
