"""The command `tune`: searches the settings of presets, each within the same budget.

space -> trials, of all presets in turn -> repeats of the best -> the file of results and the preset
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import optuna
import yaml
from optuna.trial import TrialState

from manymatch import __version__
from manymatch.config.layout import Layout
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.experiments.engine import Numbers, Run
from manymatch.experiments.preset_runs import train_preset
from manymatch.experiments.tuning.search import (
    DIVERGED,
    EPOCHS,
    KIND,
    SECONDS,
    SETTINGS,
    Search,
    finished,
    record,
)
from manymatch.experiments.workers import finish_all, gpus_of
from manymatch.model.facts import FACTS
from manymatch.networks.device import pick_device
from manymatch.results.machine import git_revision
from manymatch.results.tuning import TunedTrial, Tuning
from manymatch.training.checkpoints import RSUM, History
from manymatch.util import files
from manymatch.util.errors import ConfigError, DeviceMemoryError, DivergenceError, ManyMatchError
from manymatch.util.json_file import read_object
from manymatch.util.locks import locked

RANDOM_TRIALS = 4
"""Trials before the sampler learns from them. Optuna's ten are most of a small budget."""


@dataclass(frozen=True)
class Budget:
    """What the search for each preset may cost: `trials`, and `hours` of processor time (None: any
    number). A search ends when either is spent; a trial that has begun is finished."""

    trials: int
    hours: float | None = None


def tune(
    layout: Layout,
    dataset: str,
    presets: Sequence[str],
    budget: Budget,
    jobs: int | None = None,
    device: str = "auto",
) -> list[Tuning]:
    """Search the settings of `presets` for the best rsum of the validation split.

    The same command continues a search that was killed or whose budget was too small. Trials that
    earlier code finished count.

    The results of each preset are returned and written to `reports/tuning/DATASET/PRESET.json`, the
    best settings as a preset to `reports/tuning/DATASET/PRESET.yaml`.

    Args:
        jobs: trials at a time. None: one for each GPU or, without GPUs, for each core.
        device: auto, cpu, cuda, or one GPU such as cuda:1.

    Raises:
        ConfigError, DataError: the space, a preset or the data cannot be used. Nothing has run.
        ManyMatchError: a training failed. All other trials have been finished.
    """
    if budget.hours is not None and not math.isfinite(budget.hours):
        raise ConfigError("--hours: expected a number. Leave the option out to allow any hours")
    searches = [Search.of(layout, dataset, name) for name in presets]
    left = {search.label: budget.trials - _begin(search) for search in searches}
    rounds = range(budget.trials)
    trials = [search for number in rounds for search in searches if number < left[search.label]]
    do = partial(finish_all, logs=layout.experiment_runs(KIND), jobs=jobs, gpus=gpus_of(device))
    do(partial(_try_settings, hours=budget.hours), trials, _text, what=f"tune {dataset}")
    for search in searches:
        _write(search, budget)
    repeats = [run for search in searches for *_, run in search.repeats(search.trials())]
    work = partial(_repeat, layout=layout, dataset=dataset)
    do(work, repeats, "validation rsum {:.1f}".format, what=f"tune {dataset}, repeats")
    return [_write(search, budget) for search in searches]


def _begin(search: Search) -> int:
    """The number of finished trials. Trials of processes that were killed are queued again."""
    with search.study() as study:
        for trial in study.get_trials(states=(TrialState.RUNNING,)):
            study.tell(trial.number, state=TrialState.FAIL)
            study.enqueue_trial(trial.system_attrs.get("fixed_params", {}) | trial.params)
        begun = [t for t in study.get_trials(deepcopy=False) if t.state != TrialState.FAIL]
        if not begun:  # nothing was finished or is queued
            tried: list[dict[str, Any]] = []
            for parameters in search.first_parameters():
                # A value outside of its domain is drawn, and can be the one that was tried.
                if not any(parameters.items() <= other.items() for other in tried):
                    study.enqueue_trial(parameters)
                    tried.append(parameters)
        return len(finished(study))


def _try_settings(search: Search, hours: float | None) -> TunedTrial | None:
    """Do one trial: draw settings, train on them, and end early if earlier trials were better.
    None if the trials have spent the `hours` of the search. A trial that fails does not count."""
    with search.study() as study:
        earlier = study.get_trials(deepcopy=False)
        spent = sum(trial.user_attrs.get(SECONDS, 0.0) for trial in earlier)
        if hours is not None and spent >= 3600 * hours:
            return None
        # In SQLite two processes can take the same queued trial.
        with locked(search.database.with_suffix(".lock"), search.database):
            trial = study.ask()
        # The seed is the trial's number, so that all presets begin with the same draws.
        sampler = optuna.samplers.TPESampler(n_startup_trials=RANDOM_TRIALS, seed=trial.number)
        study.sampler = sampler
        settings = search.space.draw(search.method, trial)
        trial.set_user_attr(SETTINGS, settings)
        try:
            preset = search.preset(settings)
            watch = _watch(trial, math.ceil(preset.training.schedule.warmup_epochs))
            run = search.run(f"trial {trial.number + 1}", preset)
            numbers = _trained(run, search.layout, search.dataset, watch)
            trial.set_user_attr(EPOCHS, numbers["epochs"])
            study.tell(trial, numbers["rsum"])
        except (optuna.TrialPruned, DivergenceError, DeviceMemoryError) as end:
            trial.set_user_attr(DIVERGED, isinstance(end, DivergenceError))
            study.tell(trial, state=TrialState.PRUNED)
        except ManyMatchError:
            study.tell(trial, state=TrialState.FAIL)
            raise
        # Only the best models are kept: an experiment on the best does not train.
        trials = finished(study)
        runs = [search.run("", search.preset(one.settings)) for one in trials]
        best = {runs[number].folder for number in search.best(trials)}
        for run in runs:
            if run.folder not in best:
                files.remove(run.model)
        return record(study.get_trials(deepcopy=False)[trial.number])


def _watch(trial: optuna.Trial, warmup: int) -> Callable[[History], None]:
    """A function that tells the database the rsum of each new epoch after the epochs of `warmup`,
    and the processor time so far; `TrialPruned` ends a trial that earlier trials beat. With a GPU,
    which computes while the processor waits, the time is that of the clock on the wall."""
    clock = time.monotonic if pick_device().type == "cuda" else time.process_time
    started, reported = clock(), warmup

    def end_of_epoch(history: History) -> None:
        nonlocal reported
        for epoch in range(reported, len(history.rows)):
            trial.report(history.rows[epoch][RSUM], epoch - warmup)
        reported = max(reported, len(history.rows))
        trial.set_user_attr(EPOCHS, len(history.rows))
        trial.set_user_attr(SECONDS, clock() - started)
        if trial.should_prune():
            raise optuna.TrialPruned

    return end_of_epoch


def _trained(
    run: Run, layout: Layout, dataset: str, watch: Callable[[History], None] | None
) -> Numbers:
    """Train in the folder of `run`; a training that was killed continues after its last epoch."""

    def work() -> Numbers:
        try:
            model = train_preset(run.settings, layout, dataset, run.folder, watch)
        except (optuna.TrialPruned, DivergenceError, DeviceMemoryError):
            run.tidy("log.txt")
            raise
        facts = read_object(model / FACTS)
        return {key: facts[key] for key in ("rsum", "epoch", "epochs")}

    return run.once(work, ["model"], accept_stale=watch is None)


def _repeat(run: Run, layout: Layout, dataset: str) -> float:
    """Train again; the rsum, which is 0 if the loss was not finite."""
    try:
        numbers = _trained(run, layout, dataset, None)
    except DivergenceError:
        numbers = {"rsum": 0.0}
        run.finish(numbers)
    return rounded(numbers["rsum"])


def _text(trial: TunedTrial | None) -> str | None:
    if trial is None:
        return None
    rsum = "" if trial.rsum is None else f"validation rsum {trial.rsum:.1f}, "
    return f"{trial.state}: {rsum}{trial.seconds:.0f} s"


def _write(search: Search, budget: Budget) -> Tuning:
    """Write the results so far. A trial's repeats count up to the first that is not finished."""
    layout, dataset, name, tried = search.layout, search.dataset, search.label, search.trials()
    trials = [trial.to_json() for trial in tried]
    for number, turn, run in search.repeats(tried):
        rsums = trials[number].setdefault("repeats", [])
        numbers = run.numbers(accept_stale=True)
        if numbers is not None and turn == len(rsums):
            rsums.append(rounded(numbers["rsum"]))
    if not any(trial["state"] == "complete" for trial in trials):
        raise ManyMatchError(
            f"{name}: no trial reached its end. Allow more --trials or more --hours"
        )
    result = Tuning.model_validate(
        {
            "dataset": dataset,
            "preset": name,
            "method": search.method,
            "search": search.origin,
            "trials_allowed": budget.trials,
            "hours_allowed": budget.hours,
            "set": search.space.set,
            "trials": trials,
            "version": __version__,
            "git_revision": git_revision(layout.reports),
        }
    )
    result.write(layout.tuning(dataset, name))
    best = result.trials[result.best]
    stated = search.preset(search.repeated(best.settings))
    tuned = layout.tuned_preset(dataset, name)
    seeds = f", the mean of {len(best.repeats)} seeds" if best.repeats else ""
    head = f"""\
# Found by 'manymatch tune {dataset} {name}': trial {result.best + 1} of {len(result.trials)}.
# It has the best rsum of the validation split, {result.rsum:.1f}{seeds}.
# All trials: reports/tuning/{dataset}/{name}.json
"""
    values = stated.model_dump(mode="json", exclude_unset=True)
    files.write_text(tuned, head + yaml.safe_dump(values, sort_keys=False))
    return result
