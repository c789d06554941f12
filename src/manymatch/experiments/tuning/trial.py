"""One trial: draws settings, trains on them, and ends early if earlier trials were better."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.trial import TrialState

from manymatch.config.preset import Preset
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.experiments.run_folder import Numbers, Run
from manymatch.experiments.tuning.database import database_errors
from manymatch.experiments.tuning.search import (
    DIVERGED,
    EPOCHS,
    SECONDS,
    SETTINGS,
    Search,
    best_trials,
    finished,
    hours,
    record,
)
from manymatch.model.facts import FACTS
from manymatch.networks.device import pick_device
from manymatch.results.tuning import TunedTrial
from manymatch.training.checkpoints import RSUM, History
from manymatch.training.train import train
from manymatch.util import files
from manymatch.util.errors import DeviceMemoryError, DivergenceError, ManyMatchError
from manymatch.util.json_file import read_object
from manymatch.util.locks import locked

RANDOM_TRIALS = 4
"""Trials before the sampler learns from them. Optuna's ten are most of a small budget."""


@dataclass(frozen=True)
class Slot:
    """One trial of the budget of a search. No trial begins after `hours_allowed`."""

    search: Search
    hours_allowed: float | None

    @property
    def label(self) -> str:
        return self.search.name


def try_settings(slot: Slot) -> TunedTrial | None:
    """Do one trial; None if the hours of the search are spent.

    Raises:
        ManyMatchError: the training or the database failed. The trial does not count.
    """
    with database_errors(slot.search.database):
        return _try(slot)


def _try(slot: Slot) -> TunedTrial | None:
    search = slot.search
    study = search.study()
    if slot.hours_allowed is not None and hours(study) >= slot.hours_allowed:
        return None
    # In SQLite two processes can take the same queued trial.
    with locked(search.database.with_suffix(".lock"), search.database):
        trial = study.ask()
    # The draw depends on the number of trials before this one, so that a search which was killed
    # continues with the settings of a search which was not.
    number = sum(
        earlier.state != TrialState.FAIL
        for earlier in study.get_trials(deepcopy=False)[: trial.number]
    )
    study.sampler = optuna.samplers.TPESampler(n_startup_trials=RANDOM_TRIALS, seed=number)
    settings: dict[str, Any] = {}
    for key, domain in search.domains.items():
        settings |= domain.draw(trial, key)
    trial.set_user_attr(SETTINGS, settings)
    try:
        preset = search.preset(settings)
        watch = _Watch(trial, math.ceil(preset.training.schedule.warmup_epochs))
        numbers = _trained(search, search.run(number, preset), watch)
        watch.record_time()
        trial.set_user_attr(EPOCHS, numbers["epochs"])
        study.tell(trial, numbers["rsum"])
    except (optuna.TrialPruned, DivergenceError, DeviceMemoryError) as end:
        trial.set_user_attr(DIVERGED, isinstance(end, DivergenceError))
        study.tell(trial, state=TrialState.PRUNED)
    except ManyMatchError:
        study.tell(trial, state=TrialState.FAIL)
        raise
    _keep_best_models(search, study)
    return record(study.get_trials(deepcopy=False)[trial.number])


def _keep_best_models(search: Search, study: optuna.Study) -> None:
    """Remove the models of all trials but the best: an experiment on the best does not train."""
    trials = finished(study)
    runs = [search.run(n, search.preset(trial.settings)) for n, trial in enumerate(trials)]
    best = {runs[number].folder for number in best_trials(search, trials)}
    for run in runs:
        if run.folder not in best:
            files.remove(run.model)


class _Watch:
    """Tells the database the rsum of each epoch at the full rate, and the processor time so far.

    With a GPU, which computes while the processor waits, the time is that of the clock on the wall.

    Args:
        warmup: the number of epochs of warm-up, whose rsum is not compared with other trials'.
    """

    def __init__(self, trial: optuna.Trial, warmup: int) -> None:
        self._trial, self._warmup = trial, warmup
        self._clock = time.monotonic if pick_device().type == "cuda" else time.process_time
        self._started = self._clock()
        self._reported = 0

    def __call__(self, history: History) -> None:
        """Report the epochs that are new.

        Raises:
            TrialPruned: the earlier trials were better.
        """
        for epoch in range(max(self._reported, self._warmup), len(history.rows)):
            self._trial.report(history.rows[epoch][RSUM], epoch - self._warmup)
        self._reported = len(history.rows)
        self._trial.set_user_attr(EPOCHS, self._reported)
        self.record_time()
        if self._trial.should_prune():
            raise optuna.TrialPruned

    def record_time(self) -> None:
        self._trial.set_user_attr(SECONDS, self._clock() - self._started)


@dataclass(frozen=True)
class Repeat:
    """Repeat `count` (from 0) of trial `number` of a search: the settings of the trial, trained
    with the seed of this number."""

    search: Search
    number: int
    count: int
    preset: Preset
    """The preset of the first repeat."""

    @property
    def label(self) -> str:
        return f"{self.search.name}, trial {self.number + 1}, seed {self.run.seed}"

    @property
    def run(self) -> Run:
        seed = self.preset.seed + self.count
        return self.search.run(self.number, self.preset.model_copy(update={"seed": seed}))

    @property
    def rsum(self) -> float | None:
        """The best validation rsum; 0 if the loss was not finite, None before the end."""
        numbers = self.run.numbers(accept_stale=True)
        return None if numbers is None else rounded(numbers["rsum"])


def repeat(wanted: Repeat) -> float:
    """Train again; the rsum.

    Raises:
        ManyMatchError: the training failed.
    """
    try:
        numbers = _trained(wanted.search, wanted.run, None)
    except DivergenceError:
        numbers = {"rsum": 0.0}
        wanted.run.finish(numbers)
    return rounded(numbers["rsum"])


def _trained(search: Search, run: Run, watch: _Watch | None) -> Numbers:
    """Train in the folder of `run`; a training that was killed continues after its last epoch."""
    preset, folder, model = run.settings, run.folder, run.model

    def work() -> Numbers:
        if not model.exists():  # a run that was killed after the training has a model
            try:
                train(
                    preset,
                    search.layout.shards(search.dataset, preset.features),
                    search.layout.vocabulary(search.dataset),
                    model,
                    folder / "curves",
                    folder / "checkpoints",
                    search.layout.models,
                    end_of_epoch=watch,
                )
            except (optuna.TrialPruned, DivergenceError, DeviceMemoryError):
                run.tidy("log.txt")
                raise
        facts = read_object(model / FACTS)
        return {key: facts[key] for key in ("rsum", "epoch", "epochs")}

    return run.once(work, ["model"], accept_stale=watch is None)
