"""The command `synthetic`: every point of an experiment with every seed, as one JSON file.

{"name", "about", "baseline", "published": {POINT: {"pair", "class"}}, "seeds",
 "points": [{"label", "settings", "runs": [{"seed", "pair", "class", "epoch", "assignment",
                                            "seconds", "processor_seconds"}]}]}
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from manymatch.config.layout import Layout
from manymatch.experiments.ablation import kept
from manymatch.experiments.ablation.kept import Result
from manymatch.experiments.ablation.workers import side_by_side, workers_for
from manymatch.experiments.synthetic import run as training
from manymatch.experiments.synthetic.plan import Experiment, run_settings
from manymatch.experiments.synthetic.settings import RunSettings
from manymatch.system import files
from manymatch.system.code_hash import code_hash
from manymatch.system.parallel_map import on_one_core
from manymatch.system.progress import say


@dataclass(frozen=True)
class Job:
    """One run, and the file that its result is kept in."""

    label: str
    settings: RunSettings
    seed: int
    file: Path


def perform(name: str, experiment: Experiment, layout: Layout, jobs: int | None = None) -> Path:
    """Run what is missing of `experiment`, `jobs` at a time (None: one a core), each on one core;
    write `reports/synthetic/NAME.json`.

    Finished runs are kept in `models/.synthetic`, so that a killed or extended experiment does
    only the rest.

    Raises:
        ConfigError: a point's settings do not fit (before any training).
    """
    rows = _rows(experiment, layout.synthetic_runs)
    each = {job.file: job for listed in rows.values() for job in listed}
    missing = [job for job in each.values() if not job.file.is_file()]
    say(f"{name}: {len(each)} runs, {len(each) - len(missing)} of them finished before")
    if missing:
        _run_all(name, missing, workers_for(jobs or os.cpu_count(), len(missing)))
    target = layout.synthetic(name)
    files.write_json(target, _record(name, experiment, rows))
    return target


def _rows(experiment: Experiment, folder: Path) -> dict[str, list[Job]]:
    """The runs of each point."""
    code = code_hash(training.__name__)
    return {
        name: [_job(name, settings, seed, folder, code) for seed in experiment.seeds]
        for name, settings in run_settings(experiment).items()
    }


def _job(name: str, settings: RunSettings, seed: int, folder: Path, code: str) -> Job:
    """Equal runs of equal code have the same file."""
    key = kept.key_of(settings=settings.model_dump(mode="json"), seed=seed, code=code)
    return Job(f"{name}, seed {seed}", settings, seed, folder / f"{key}.json")


def _run_all(name: str, jobs: Sequence[Job], workers: int) -> None:
    started = time.monotonic()
    # Every run is safe in its file as soon as it is done.
    for done, (job, result) in enumerate(side_by_side(finish, jobs, workers, name), start=1):
        if isinstance(result, Exception):
            raise result
        minutes = (time.monotonic() - started) / done * (len(jobs) - done) / 60
        left = f"{len(jobs) - done} left, about {minutes:.0f} min"
        say(f"{job.label}: R@1 of pairs {result['pair']['r1']:.1f}; {left}")


def finish(job: Job) -> Result:
    """The result of `job`, which its file holds from now on."""
    # A sharp softmax makes many subnormal numbers, for which a CPU takes several times as long.
    torch.set_flush_denormal(True)
    with on_one_core():  # sums depend on how many cores share them
        return kept.finished(job.file, lambda: training.run(job.settings, job.seed))


def _record(name: str, experiment: Experiment, rows: dict[str, list[Job]]) -> dict[str, Any]:
    return {
        "name": name,
        **experiment.model_dump(mode="json", include={"about", "baseline", "published", "seeds"}),
        "points": [
            {
                "label": label,
                "settings": jobs[0].settings.model_dump(mode="json"),
                "runs": [{"seed": job.seed, **kept.read(job.file)} for job in jobs],
            }
            for label, jobs in rows.items()
        ],
    }
