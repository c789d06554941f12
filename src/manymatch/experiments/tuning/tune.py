"""The command `tune`: searches the settings of presets, each within the same budget.

space -> trials, of all presets in turn -> worker processes -> the file of results and the preset
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import yaml
from optuna import Study
from optuna.trial import TrialState

from manymatch import __version__
from manymatch.config.layout import Layout
from manymatch.experiments.tuning.database import database_errors
from manymatch.experiments.tuning.search import (
    KIND,
    SETTINGS,
    Search,
    best_trials,
    finished,
    restored,
)
from manymatch.experiments.tuning.trial import Repeat, Slot, repeat, try_settings
from manymatch.experiments.workers import finish_all, gpus_of
from manymatch.results.machine import git_revision
from manymatch.results.tuning import TunedTrial, Tuning
from manymatch.util import files
from manymatch.util.errors import ConfigError, DataError, ManyMatchError

_MARK = "# Written by 'manymatch tune"


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
    extend: bool = False,
) -> list[Tuning]:
    """Search the settings of `presets` for the best rsum of the validation split.

    The same command continues a search that was killed or whose budget was too small. Trials that
    earlier code finished count.

    Args:
        jobs: trials at a time. None: one for each GPU or, without GPUs, for each core.
        device: auto, cpu, cuda, or one GPU such as cuda:1.
        extend: whether a search without trials on this machine begins with those in its file of
            results.

    Returns:
        The results of each preset, which are also written to `reports/tuning/DATASET/PRESET.json`.
        The best settings are written to `presets/DATASET/PRESET_tuned.yaml`.

    Raises:
        ConfigError, DataError: the space, a preset or the data cannot be used. Nothing has run.
        ManyMatchError: a training failed. All other trials have been finished.
    """
    if budget.hours is not None and not math.isfinite(budget.hours):
        raise ConfigError("--hours: expected a number. Leave the option out to allow any hours")
    searches = [Search.of(layout, dataset, name) for name in presets]
    for search in searches:
        _refuse_handwritten(layout.tuned_preset(dataset, search.name))
    left = {}
    for search in searches:
        with database_errors(search.database):
            left[search.name] = budget.trials - _begin(search, extend)
    slots = [
        Slot(search, budget.hours)
        for round_ in range(budget.trials)
        for search in searches
        if round_ < left[search.name]
    ]
    logs = layout.experiment_runs(KIND)
    do = partial(finish_all, logs=logs, jobs=jobs, gpus=gpus_of(device))
    do(try_settings, slots, _text, what=f"tune {dataset}")
    for search in searches:
        _write(search, budget)
    repeats = list(chain.from_iterable(map(_repeats, searches)))
    do(repeat, repeats, "validation rsum {:.1f}".format, what=f"tune {dataset}, repeats")
    return [_write(search, budget) for search in searches]


def _begin(search: Search, extend: bool) -> int:
    """The number of finished trials. Trials of processes that were killed are queued again, before
    those that wait."""
    study = search.study()
    waiting = study.get_trials(states=(TrialState.WAITING,))
    for killed in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        study.tell(killed.number, state=TrialState.FAIL)
        if SETTINGS in killed.user_attrs:  # else the same settings are drawn again
            study.enqueue_trial(killed.params)
    for trial in waiting:  # the queue gives the oldest
        study.tell(study.ask(), state=TrialState.FAIL)
        study.enqueue_trial(trial.system_attrs["fixed_params"])
    if all(trial.state == TrialState.FAIL for trial in study.get_trials(deepcopy=False)):
        if extend:
            _restore(search, study)
        restored_trials = study.get_trials(states=(TrialState.COMPLETE, TrialState.PRUNED))
        tried = [trial.params for trial in restored_trials]
        for parameters in search.first_parameters():
            if parameters not in tried:
                study.enqueue_trial(parameters)
                tried.append(parameters)
    return len(finished(study))


def _restore(search: Search, study: Study) -> None:
    """Give `study` the trials of the file of results, if they are those of the same search.

    Raises:
        DataError: the file is malformed.
    """
    path = search.layout.tuning(search.dataset, search.name)
    if not path.is_file():
        return
    result = Tuning.read(path)
    if result.search != search.origin:
        return
    for number, trial in enumerate(result.trials):
        try:
            study.add_trial(restored(search, trial))
        except ValueError:
            raise DataError(
                f"{path}: the settings of trial {number + 1} lie outside of the space. Leave out "
                "--extend"
            ) from None
        preset = search.preset(search.repeated(trial.settings))
        for count, rsum in enumerate(trial.repeats):
            Repeat(search, number, count, preset).run.finish({"rsum": rsum})


def _repeats(search: Search) -> list[Repeat]:
    """The trainings of the best trials with each seed."""
    wanted = search.space.repeats
    if wanted is None:
        return []
    trials = _finished(search)
    return [
        Repeat(search, number, count, search.preset(search.repeated(trials[number].settings)))
        for number in best_trials(search, trials)
        for count in range(wanted.seeds)
    ]


def _finished(search: Search) -> list[TunedTrial]:
    with database_errors(search.database):
        return finished(search.study())


def _text(trial: TunedTrial | None) -> str | None:
    if trial is None:
        return None
    rsum = "" if trial.rsum is None else f"validation rsum {trial.rsum:.1f}, "
    return f"{trial.state}: {rsum}{trial.seconds:.0f} s"


def _write(search: Search, budget: Budget) -> Tuning:
    """Write the results so far. A trial's repeats count up to the first that is not finished."""
    layout, dataset = search.layout, search.dataset
    trials = [trial.to_json() for trial in _finished(search)]
    for again in _repeats(search):
        rsums = trials[again.number].setdefault("repeats", [])
        if again.rsum is not None and again.count == len(rsums):
            rsums.append(again.rsum)
    if not any(trial["state"] == "complete" for trial in trials):
        raise ManyMatchError(
            f"{search.name}: no trial reached its end. Allow more --trials or more --hours"
        )
    result = Tuning.model_validate(
        {
            "dataset": dataset,
            "preset": search.name,
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
    result.write(layout.tuning(dataset, search.name))
    preset = search.preset(search.repeated(result.trials[result.best].settings))
    tuned = layout.tuned_preset(dataset, search.name)
    stated = preset.model_dump(mode="json", exclude_unset=True)
    files.write_text(tuned, _head(result, tuned) + yaml.safe_dump(stated, sort_keys=False))
    return result


def _head(result: Tuning, tuned: Path) -> str:
    """Where the preset comes from, as a comment."""
    subject = f"{result.dataset} {result.preset}"
    repeats = len(result.trials[result.best].repeats)
    seeds = f", the mean of {repeats} seeds" if repeats else ""
    return f"""\
{_MARK} {subject}'. The next run of the command writes the file anew.
#
#   dvc repro evaluate@{result.dataset}-{tuned.stem}
#
# The preset {result.preset} with the settings of trial {result.best + 1} of {len(result.trials)}.
# The trial had the best rsum of the validation split, {result.rsum:.1f}{seeds}.
# All trials: reports/tuning/{result.dataset}/{result.preset}.json
"""


def _refuse_handwritten(tuned: Path) -> None:
    if tuned.is_file() and not tuned.read_text(encoding="utf-8").startswith(_MARK):
        raise ConfigError(
            f"{tuned}: 'tune' did not write this file and does not replace it. Rename the file"
        )
