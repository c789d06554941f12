"""Performs an experiment of any kind: read from top to bottom.

plan -> points x seeds -> the runs that are not finished -> worker processes -> file of results
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from manymatch.experiments.experiment import Experiment, Row
from manymatch.experiments.plan import Point, points
from manymatch.experiments.run_folder import Numbers, Run, key_of
from manymatch.experiments.workers import finish_all, gpus_of
from manymatch.util.locks import lock_path, locked
from manymatch.util.progress import say


def perform(experiment: Experiment[Any, Any]) -> Path:
    """Do the runs of `experiment` that are not finished, and write the file of results.

    The numbers of finished runs are kept, so that an experiment that was killed or extended does
    the missing runs only. An interrupted training continues after its last epoch.

    Returns:
        The path of the file of results.

    Raises:
        ConfigError, DataError: the settings of a point or the data do not fit. Nothing has run.
        ManyMatchError: a run failed. All other runs have been finished.
    """
    experiment.check()
    experiment.prepare()
    rows = [
        (point, [_run(experiment, point, seed) for seed in experiment.plan.seeds])
        for point in points(experiment.plan)
    ]
    all_runs = [run for _, runs in rows for run in runs]
    if experiment.options.extend:
        recorded = experiment.recorded(all_runs)
        # Numbers of the present code come before numbers of other code.
        for run, code, made in sorted(recorded, key=lambda each: each[1] != each[0].code):
            if run.numbers(experiment.options.accept_stale) is None:
                replace(run, code=code).finish(made)
    numbers = _finish_all(experiment, all_runs)
    finished = [Row(point, [(run, numbers[run.folder]) for run in runs]) for point, runs in rows]
    result = experiment.result(finished)
    path = experiment.layout.reports / result.path.format_map(vars(result))
    with locked(lock_path(path), path):
        experiment.publish(finished)
        result.write(path)
    return path


def _run(experiment: Experiment[Any, Any], point: Point, seed: int) -> Run:
    settings = experiment.settings(point, seed)
    key = key_of(settings=experiment.inputs(settings), seed=seed)
    return Run(
        label=f"{point.label}, seed {seed}",
        settings=settings,
        seed=seed,
        code=experiment.code(settings),
        folder=experiment.layout.experiment_runs(experiment.kind) / key,
    )


def _finish_all(experiment: Experiment[Any, Any], runs: Sequence[Run]) -> dict[Path, Numbers]:
    """The numbers of all `runs` by folder. Equal runs have the same folder and are done once."""
    name, options = experiment.name, experiment.options
    different = {run.folder: run for run in runs}
    earlier = {
        folder: run.numbers(options.accept_stale, options.keep) for folder, run in different.items()
    }
    finished = {folder: numbers for folder, numbers in earlier.items() if numbers is not None}
    missing = [run for folder, run in different.items() if folder not in finished]
    say(f"{name}: {len(different)} runs, {len(finished)} of them finished before")
    if not missing:
        return finished
    gpus = gpus_of(options.device) if "--device" in experiment.options_of_kind else []
    done = finish_all(
        partial(finish, experiment=experiment),
        missing,
        experiment.headline,
        what=name,
        logs=experiment.layout.experiment_runs(experiment.kind),
        jobs=options.jobs,
        gpus=gpus,
        one_a_core=experiment.one_run_a_core,
    )
    return finished | {run.folder: numbers for run, numbers in done}


def finish(run: Run, experiment: Experiment[Any, Any]) -> Numbers:
    """The numbers of `run`, which another process may have finished meanwhile."""
    model = ["model"] if experiment.options.keep else []
    return run.once(
        lambda: experiment.run(run.settings, run.seed, run.folder),
        [*experiment.files_of_a_run, *model],
        experiment.options.accept_stale,
        needs_model=experiment.options.keep,
    )
