"""The stage `ablate`: every point of an ablation with every seed, as one JSON file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from manymatch.config.layout import Layout
from manymatch.evaluation.provenance import setting_of
from manymatch.experiments.ablation.plan import Plan, Point, points
from manymatch.experiments.ablation.presets import preset_of
from manymatch.experiments.ablation.run import run
from manymatch.experiments.ablation.store import Inputs, Job, Result, folder_of, kept
from manymatch.experiments.ablation.workers import side_by_side, workers_for
from manymatch.methods import entry_point
from manymatch.shards.index import read_index
from manymatch.system import files
from manymatch.system.code_hash import code_hash
from manymatch.system.errors import ManyMatchError
from manymatch.system.progress import say

_ENTRIES = "manymatch.training.train", "manymatch.evaluation.evaluate"


@dataclass(frozen=True)
class Options:
    """How to run: processes at once (None: one a core or GPU), whether models stay, and whether
    results of earlier code count."""

    jobs: int | None = None
    keep: bool = False
    accept_stale: bool = False


def ablate(name: str, plan: Plan, layout: Layout, split: str, options: Options) -> Path:
    """Train and evaluate what is missing of `plan`; write `reports/ablations/DATASET/NAME.json`.

    Finished runs are kept in `models/.ablations`, so that a killed or extended ablation trains
    only the rest; unfinished ones go on from their last epoch.

    Raises:
        ConfigError, DataError: a point's settings or the data do not fit (before any training).
        ManyMatchError: a run failed; the others have been finished.
    """
    rows = [(point, _jobs(plan, point, layout, split)) for point in points(plan)]
    results = _complete(name, [job for _, jobs in rows for job in jobs], options)
    record = _record(name, plan, split, rows, results)
    target = layout.ablation(plan.dataset, name)
    files.write_json(target, record)
    return target


def _jobs(plan: Plan, point: Point, layout: Layout, split: str) -> list[Job]:
    """One job a seed; a fault names the point."""
    try:
        return [_job(plan, point, seed, layout, split) for seed in plan.seeds]
    except ManyMatchError as fault:
        raise type(fault)(f"point '{point.label}': {fault}") from None


def _job(plan: Plan, point: Point, seed: int, layout: Layout, split: str) -> Job:
    preset = preset_of(layout.presets, plan, point, seed)
    dataset = plan.dataset
    inputs = Inputs(
        layout.shards(dataset, preset.features),
        layout.vocabulary(dataset),
        layout.captions(dataset),
        layout.relevance(dataset),
        layout.models,
        split,
    )
    folder = folder_of(layout, dataset, preset, inputs)
    label = f"{point.label}, seed {seed}"
    code = code_hash(*_ENTRIES, entry_point(preset.method))
    return Job(label, preset, inputs, folder, code)


def _complete(name: str, jobs: Sequence[Job], options: Options) -> dict[Path, Result]:
    """The result of every job, by its folder; equal jobs are one."""
    each = {job.folder: job for job in jobs}
    found = {folder: kept(job, options.accept_stale) for folder, job in each.items()}
    results = {folder: result for folder, result in found.items() if result is not None}
    missing = [job for folder, job in each.items() if folder not in results]
    say(f"{name}: {len(each)} runs, {len(results)} of them finished before")
    if missing:
        results |= _run_all(name, missing, options)
    return results


def _run_all(name: str, jobs: Sequence[Job], options: Options) -> dict[Path, Result]:
    workers = workers_for(options.jobs, len(jobs))
    say(f"{name}: {workers} at a time; what they say is in {jobs[0].folder.parent}/*/log.txt")
    work = partial(run, keep=options.keep, accept_stale=options.accept_stale)
    results: dict[Path, Result] = {}
    failed: list[str] = []
    started = time.monotonic()
    for job, outcome in side_by_side(work, jobs, workers, name):
        if isinstance(outcome, ManyMatchError):
            failed.append(job.label)
            say(f"{job.label}: failed: {outcome}")
        else:
            results[job.folder] = outcome
            left = len(jobs) - len(results) - len(failed)
            say(f"{job.label}: {_told(outcome)}{_left(left, len(results), started)}")
    if failed:
        raise ManyMatchError(
            f"{name}: {len(failed)} of {len(jobs)} runs failed ({'; '.join(failed)}); "
            "the others are kept: mend these and run the same command"
        )
    return results


def _told(result: Result) -> str:
    seconds = f", trained in {result['seconds']:.0f} s" if result["seconds"] else ""
    return f"rsum {result['metrics']['rsum']:.1f}{seconds}"


def _left(left: int, done: int, started: float) -> str:
    minutes = (time.monotonic() - started) / done * left / 60
    return f"; {left} left, about {minutes:.0f} min" if left else "; the last"


def _record(
    name: str,
    plan: Plan,
    split: str,
    rows: Sequence[tuple[Point, Sequence[Job]]],
    results: dict[Path, Result],
) -> dict[str, Any]:
    """What the report reads; means and spreads are computed there."""
    every = [job for _, jobs in rows for job in jobs]
    any_result = next(iter(results.values()))
    return {
        "name": name,
        "about": plan.about,
        "dataset": plan.dataset,
        "preset": plan.preset,
        "set": plan.set,
        "keys": list(plan.over),
        "seeds": plan.seeds,
        "split": split,
        "images": any_result["images"],
        "captions": any_result["captions"],
        "setting": _setting(every),
        "points": [_point(point, jobs, results) for point, jobs in rows],
    }


def _setting(jobs: Sequence[Job]) -> str:
    """`reproduced` only if every run is."""
    settings = {setting_of(job.preset, read_index(job.inputs.shards)) for job in jobs}
    return settings.pop() if len(settings) == 1 else "small-scale"


def _point(point: Point, jobs: Sequence[Job], results: dict[Path, Result]) -> dict[str, Any]:
    return {
        "label": point.label,
        "settings": point.settings,
        "resolved": jobs[0].preset.model_dump(mode="json", exclude={"seed"}),
        "runs": [{"seed": job.preset.seed, **results[job.folder]} for job in jobs],
    }
