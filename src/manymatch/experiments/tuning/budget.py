"""The command `tune`: searches the settings of presets, each within the same budget.

space -> trials, of all presets in turn -> worker processes -> the file of results and the preset
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import optuna
import yaml
from optuna.trial import TrialState

from manymatch import __version__
from manymatch.config.layout import Layout
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.experiments.tuning.search import FINISHED, KIND, SETTINGS, Search, finished
from manymatch.experiments.tuning.trials import repeat, repeat_of, repeats_of, try_settings
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
        tuned = layout.tuned_preset(dataset, search.name)
        if tuned.is_file() and not tuned.read_text(encoding="utf-8").startswith(_MARK):
            raise ConfigError(
                f"{tuned}: 'tune' did not write this file and does not replace it. Rename the file"
            )
    left = {search.name: budget.trials - _begin(search, extend) for search in searches}
    rounds = range(budget.trials)
    trials = [search for number in rounds for search in searches if number < left[search.name]]
    do = partial(finish_all, logs=layout.experiment_runs(KIND), jobs=jobs, gpus=gpus_of(device))
    do(partial(try_settings, hours=budget.hours), trials, _text, what=f"tune {dataset}")
    for search in searches:
        _write(search, budget)
    repeats = [again.run for search in searches for again in repeats_of(search, _tried(search))]
    work = partial(repeat, layout=layout, dataset=dataset)
    do(work, repeats, "validation rsum {:.1f}".format, what=f"tune {dataset}, repeats")
    return [_write(search, budget) for search in searches]


def _begin(search: Search, extend: bool) -> int:
    """The number of finished trials. Trials of processes that were killed are queued again, before
    those that wait."""
    with search.study() as study:
        queued = study.get_trials(states=(TrialState.RUNNING, TrialState.WAITING))
        for trial in sorted(queued, key=lambda trial: trial.state == TrialState.WAITING):
            fixed = trial.system_attrs.get("fixed_params", {})
            if trial.state == TrialState.WAITING:
                study.ask()  # the queue gives the oldest, and only what runs can fail
            study.tell(trial.number, state=TrialState.FAIL)
            if fixed or SETTINGS in trial.user_attrs:  # else the same settings are drawn again
                study.enqueue_trial(fixed | trial.params)
        if all(trial.state == TrialState.FAIL for trial in study.get_trials(deepcopy=False)):
            if extend:
                _restore(search, study)
            tried = [trial.params for trial in study.get_trials(deepcopy=False, states=FINISHED)]
            for parameters in search.first_parameters():
                if parameters not in tried:
                    study.enqueue_trial(parameters)
                    tried.append(parameters)
        return len(finished(study))


def _restore(search: Search, study: optuna.Study) -> None:
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
            study.add_trial(search.restored(trial))
        except ValueError:
            raise DataError(
                f"{path}: the settings of trial {number + 1} lie outside of the space. Leave out "
                "--extend"
            ) from None
        for turn, rsum in enumerate(trial.repeats):
            repeat_of(search, number, trial, turn).run.finish({"rsum": rsum})


def _tried(search: Search) -> list[TunedTrial]:
    with search.study() as study:
        return finished(study)


def _text(trial: TunedTrial | None) -> str | None:
    if trial is None:
        return None
    rsum = "" if trial.rsum is None else f"validation rsum {trial.rsum:.1f}, "
    return f"{trial.state}: {rsum}{trial.seconds:.0f} s"


def _write(search: Search, budget: Budget) -> Tuning:
    """Write the results so far. A trial's repeats count up to the first that is not finished."""
    layout, dataset, tried = search.layout, search.dataset, _tried(search)
    trials = [trial.to_json() for trial in tried]
    for number, turn, run in repeats_of(search, tried):
        rsums = trials[number].setdefault("repeats", [])
        numbers = run.numbers(accept_stale=True)
        if numbers is not None and turn == len(rsums):
            rsums.append(rounded(numbers["rsum"]))
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
    best = result.trials[result.best]
    stated = search.preset(search.repeated(best.settings))
    tuned = layout.tuned_preset(dataset, search.name)
    seeds = f", the mean of {len(best.repeats)} seeds" if best.repeats else ""
    head = f"""\
{_MARK} {dataset} {search.name}'. The next run of the command writes the file anew.
#
#   dvc repro evaluate@{dataset}-{tuned.stem}
#
# The preset {search.name} with the settings of trial {result.best + 1} of {len(result.trials)}.
# The trial had the best rsum of the validation split, {result.rsum:.1f}{seeds}.
# All trials: reports/tuning/{dataset}/{search.name}.json
"""
    values = stated.model_dump(mode="json", exclude_unset=True)
    files.write_text(tuned, head + yaml.safe_dump(values, sort_keys=False))
    return result
