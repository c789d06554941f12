"""The trainings of a search: trials, which draw settings and may end early, and repeats."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import optuna
from optuna.trial import TrialState

from manymatch.config.layout import Layout
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.experiments.engine import Numbers, Run
from manymatch.experiments.preset_runs import train_preset
from manymatch.experiments.tuning.search import (
    DIVERGED,
    EPOCHS,
    SECONDS,
    SETTINGS,
    Search,
    finished,
    record,
)
from manymatch.model.facts import FACTS
from manymatch.networks.device import pick_device
from manymatch.results.tuning import TunedTrial
from manymatch.training.checkpoints import RSUM, History
from manymatch.util import files
from manymatch.util.errors import DeviceMemoryError, DivergenceError, ManyMatchError
from manymatch.util.json_file import read_object
from manymatch.util.locks import locked

RANDOM_TRIALS = 4
"""Trials before the sampler learns from them. Optuna's ten are most of a small budget."""


def try_settings(search: Search, hours: float | None) -> TunedTrial | None:
    """Do one trial: draw settings, train on them, and end early if earlier trials were better.
    None if the trials have spent the `hours` of the search.

    Raises:
        ManyMatchError: the training or the database failed. The trial does not count.
    """
    with search.study() as study:
        earlier = study.get_trials(deepcopy=False)
        spent = sum(trial.user_attrs.get(SECONDS, 0.0) for trial in earlier)
        if hours is not None and spent >= 3600 * hours:
            return None
        # In SQLite two processes can take the same queued trial.
        with locked(search.database.with_suffix(".lock"), search.database):
            trial = study.ask()
        # The draw depends on the number of the trials before this one that did not fail, so that a
        # search which was killed continues with the settings of a search which was not.
        before = study.get_trials(deepcopy=False)[: trial.number]
        number = sum(other.state != TrialState.FAIL for other in before)
        study.sampler = optuna.samplers.TPESampler(n_startup_trials=RANDOM_TRIALS, seed=number)
        settings: dict[str, Any] = {}
        for key, domain in search.domains.items():
            settings |= domain.draw(trial, key)
        trial.set_user_attr(SETTINGS, settings)
        try:
            preset = search.preset(settings)
            watch = _watch(trial, math.ceil(preset.training.schedule.warmup_epochs))
            run = search.run(f"trial {number}", preset)
            numbers = _trained(run, search.layout, search.dataset, watch)
            trial.set_user_attr(EPOCHS, numbers["epochs"])
            study.tell(trial, numbers["rsum"])
        except (optuna.TrialPruned, DivergenceError, DeviceMemoryError) as end:
            trial.set_user_attr(DIVERGED, isinstance(end, DivergenceError))
            study.tell(trial, state=TrialState.PRUNED)
        except ManyMatchError:
            study.tell(trial, state=TrialState.FAIL)
            raise
        _keep_best_models(search, finished(study))
        return record(study.get_trials(deepcopy=False)[trial.number])


def _watch(trial: optuna.Trial, warmup: int) -> Callable[[History], None]:
    """A function that tells the database the rsum of each new epoch at the full rate, and the
    processor time so far. With a GPU, which computes while the processor waits, the time is that of
    the clock on the wall.

    The function raises `TrialPruned` if the earlier trials were better.

    Args:
        warmup: the number of epochs of warm-up, whose rsum is not compared with other trials'.
    """
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


def _keep_best_models(search: Search, trials: Sequence[TunedTrial]) -> None:
    """Remove the models of all trials but the best: an experiment on the best does not train."""
    runs = [search.run("", search.preset(trial.settings)) for trial in trials]
    best = {runs[number].folder for number in search.best(trials)}
    for run in runs:
        if run.folder not in best:
            files.remove(run.model)


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


class Repeat(NamedTuple):
    """The training of trial `number` of a search with seed `turn` of its repeats, from 0."""

    number: int
    turn: int
    run: Run


def repeat_of(search: Search, number: int, trial: TunedTrial, turn: int) -> Repeat:
    preset = search.preset(search.repeated(trial.settings))
    preset = preset.model_copy(update={"seed": preset.seed + turn})
    return Repeat(number, turn, search.run(f"trial {number + 1}, seed {preset.seed}", preset))


def repeats_of(search: Search, trials: Sequence[TunedTrial]) -> Iterator[Repeat]:
    """The trainings of the best trials with each seed."""
    wanted = search.space.repeats
    for number in search.best(trials) if wanted else ():
        for turn in range(wanted.seeds if wanted else 0):
            yield repeat_of(search, number, trials[number], turn)


def repeat(run: Run, layout: Layout, dataset: str) -> float:
    """Train again; the rsum, which is 0 if the loss was not finite.

    Raises:
        ManyMatchError: the training failed.
    """
    try:
        numbers = _trained(run, layout, dataset, None)
    except DivergenceError:
        numbers = {"rsum": 0.0}
        run.finish(numbers)
    return rounded(numbers["rsum"])
