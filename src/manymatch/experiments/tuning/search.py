"""The search for the settings of one preset: its trials lie in a database that survives a kill."""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import and_, or_
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState
from sqlalchemy.exc import SQLAlchemyError

from manymatch.config.layout import Layout
from manymatch.config.names import preset_path
from manymatch.config.preset import Preset, read_preset
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.experiments.engine import Run, key_of
from manymatch.experiments.grid import Settings
from manymatch.experiments.preset_runs import (
    full_key,
    full_keys,
    portable_inputs,
    run_preset,
    training_inputs,
    training_run,
)
from manymatch.experiments.tuning.space import Pruning, Space, read_space
from manymatch.methods import check_model, entry_point, method_class
from manymatch.results.tuning import TunedTrial
from manymatch.util.errors import ConfigError, StorageError, first_line

KIND = "tuning"
SECONDS, EPOCHS, DIVERGED, SETTINGS = "seconds", "epochs", "diverged", "settings"
"""The names of what a trial in the database holds besides Optuna's own values."""

_FAULTS = SQLAlchemyError, sqlite3.Error, optuna.exceptions.StorageInternalError


@dataclass(frozen=True)
class Search:
    """The search for the settings of the preset `label`. Worker processes get a copy.

    `key` is the hash of preset, space and data: with others, the search begins anew.
    """

    layout: Layout
    dataset: str
    label: str
    space: Space
    key: str
    origin: str
    """The hash of the same values but the last bits of the features, in which machines differ."""
    inputs: dict[str, str]
    """The hashes of the data that a trial reads."""
    stated: Preset

    @classmethod
    def of(cls, layout: Layout, dataset: str, name: str) -> "Search":
        """The search that the space of the data set describes.

        Raises:
            ConfigError: the preset or the space is missing or faulty, or nothing can be learnt.
            DataError: the shards are missing or have no split `train` or `validation`.
        """
        preset = read_preset(preset_path(layout.presets, dataset, name))
        if not method_class(preset.method).learns:
            raise ConfigError(
                f"{name}: the method '{preset.method}' learns nothing, so there is nothing to "
                "tune. Name a preset of another method"
            )
        space = read_space(layout.search_space(dataset))
        inputs = training_inputs(layout, dataset, preset)
        # Trials serve any repeats and do not depend on which other preset gave settings to try.
        stated = space.model_dump(mode="json", exclude={"repeats", "starts_from"})
        same = {"preset": preset.model_dump(mode="json"), "space": stated}
        origin = key_of(**same, inputs=portable_inputs(layout, dataset, preset, inputs))
        key = key_of(**same, inputs=inputs)
        search = cls(layout, dataset, name, space, key, origin, inputs, preset)
        search.check()
        search.first_parameters()
        return search

    def check(self) -> None:
        """Check the settings that trials may draw, so that no trial fails."""
        path = self.layout.search_space(self.dataset)
        for name in chain.from_iterable(self.space.starts_from.items()):
            try:
                preset_path(self.layout.presets, self.dataset, name)
            except ConfigError as fault:
                raise ConfigError(f"{path}: starts_from: {fault}") from None
        try:
            for method in self.space.methods:
                entry_point(method, "methods: ")
            domains = self.space.method_domains(self.method)
        except ConfigError as fault:
            raise ConfigError(f"{path}: {fault}") from None
        samples = {key: domain.samples(key) for key, domain in domains.items()}
        self._refuse_lost(samples)
        first = {key: settings for key, (settings, *_) in samples.items()}
        changes = [("set", {}), ("repeats.set", self.repeated({}))]
        changes += [(key, settings) for key, several in samples.items() for settings in several]
        for key, settings in changes:
            try:
                preset = self.preset(reduce(or_, (first | {key: settings}).values()))
            except ConfigError as fault:
                raise ConfigError(f"{path}: {key}: {fault}") from None
            if (preset.method, preset.features) != (self.stated.method, self.stated.features):
                raise ConfigError(
                    f"{path}: {key}: a search has one method and one kind of features. Write a "
                    "preset for each and tune all of them"
                )

    def _refuse_lost(self, samples: dict[str, list[Settings]]) -> None:
        """Refuse a setting that another key of the space always replaces. `samples` are settings
        that each domain may give."""
        path = self.layout.search_space(self.dataset)
        drawn: dict[str, str] = {}
        for domain, several in samples.items():
            for key in dict.fromkeys(full_key(key, self.method) for one in several for key in one):
                if (first := drawn.setdefault(key, domain)) != domain:
                    raise ConfigError(
                        f"{path}: {domain}: '{first}' searches '{key}' too, and one value would be "
                        "lost. Remove the key from one of the two"
                    )
            always = reduce(and_, (one.keys() for one in several))
            for key in self.space.set.keys() & always:
                raise ConfigError(
                    f"{path}: set: {key}: '{domain}' searches this setting, so the value would be "
                    "lost. Remove the key from 'set'"
                )
        for key in self.repeated({}):
            if (searching := drawn.get(full_key(key, self.method))) is not None:
                raise ConfigError(
                    f"{path}: repeats.set: {key}: the setting is searched ('{searching}'), and the "
                    "value that the search finds would be lost. Remove the key from one of the two"
                )

    @property
    def method(self) -> str:
        return self.stated.method

    def preset(self, settings: Settings) -> Preset:
        """The preset with the settings of the space that all trials have, and with `settings`. A
        key or value that does not fit is a `ConfigError`."""
        path = preset_path(self.layout.presets, self.dataset, self.label)
        return run_preset(path, full_keys(self.space.set | settings, self.method))

    def repeated(self, settings: Settings) -> Settings:
        """The settings of a repeat of the trial that has `settings`."""
        return settings | (self.space.repeats.set if self.space.repeats else {})

    def run(self, label: str, preset: Preset) -> Run:
        """The training of `preset`, a trial or a repeat of this search."""
        label = f"{self.label}, {label}"
        return training_run(self.layout, self.dataset, preset, self.inputs, label)

    def repeats(self, trials: Sequence[TunedTrial]) -> Iterator[tuple[int, int, Run]]:
        """For the best trials and each seed: the trial's number, the turn, and the training."""
        seeds = self.space.repeats.seeds if self.space.repeats else 0
        for number in self.best(trials) if seeds else ():
            preset = self.preset(self.repeated(trials[number].settings))
            for turn in range(seeds):
                seeded = preset.model_copy(update={"seed": preset.seed + turn})
                yield number, turn, self.run(f"trial {number + 1}, seed {seeded.seed}", seeded)

    @property
    def database(self) -> Path:
        """`models/.experiments/tuning/DATASET/NAME.db`."""
        return self.layout.experiment_runs(KIND) / self.dataset / f"{self.label}.db"

    @contextlib.contextmanager
    def study(self) -> Iterator[optuna.Study]:
        """The trials so far. Each fault of the database in the block is a `StorageError`."""
        with database_errors(self.database):
            yield open_study(self.database, self.key, self.space.pruning)

    def trials(self) -> list[TunedTrial]:
        """The trials that count."""
        with self.study() as study:
            return finished(study)

    def first_parameters(self) -> list[dict[str, Any]]:
        """The parameters of the first trials: the preset's own settings, the best settings of the
        data set that the space is like, those of the preset that the search starts from, and those
        of an earlier search on this data set."""
        other = self.space.starts_from.get(self.label)
        searched = [
            (self.space.like, self.label),
            (self.dataset, other),
            (self.dataset, self.label),
        ]
        best = [
            read_preset(path)
            for data, name in searched
            if data and name
            for path in (
                self.layout.tuned_preset(data, name),
                self.layout.presets / data / f"{name}.yaml",
            )
            if path.is_file()
        ]
        return [self._parameters(preset) for preset in (self.preset({}), *best)]

    def _parameters(self, preset: Preset) -> dict[str, Any]:
        """The parameters of a trial with the settings of `preset`, where these are searched."""
        model = check_model(preset.method, preset.model).model_dump(mode="json")
        values = preset.model_dump(mode="json") | {"model": model}

        def stated(key: str) -> Any:
            group: Any = values
            for part in full_key(key, preset.method).split("."):
                group = group.get(part) if isinstance(group, dict) else None
            return group

        return self.space.parameters(self.method, stated)

    def best(self, trials: Sequence[TunedTrial]) -> list[int]:
        """The numbers of the best complete trials with different settings: of those to repeat, or
        of the best one."""
        best: list[int] = []
        for number in sorted(range(len(trials)), key=lambda number: -trials[number].mean):
            settings = [trials[other].settings for other in best]
            if trials[number].mean >= 0 and trials[number].settings not in settings:
                best.append(number)
        return best[: self.space.repeats.trials if self.space.repeats else 1]


def record(trial: optuna.trial.FrozenTrial) -> TunedTrial:
    """What the file of results says about a finished trial."""
    complete = trial.state == TrialState.COMPLETE
    diverged = trial.user_attrs.get(DIVERGED, False)
    rsum = trial.value if complete else max(trial.intermediate_values.values(), default=None)
    return TunedTrial(
        state="complete" if complete else "diverged" if diverged else "pruned",
        settings=trial.user_attrs[SETTINGS],
        rsum=rounded(rsum) if rsum is not None else None,
        epochs=trial.user_attrs.get(EPOCHS, 0),
        seconds=round(trial.user_attrs.get(SECONDS, 0.0), 1),
        curve=[rounded(value) for _, value in sorted(trial.intermediate_values.items())],
    )


def finished(study: optuna.Study) -> list[TunedTrial]:
    """The trials that count, in the order in which they began."""
    states = TrialState.COMPLETE, TrialState.PRUNED
    return [record(trial) for trial in study.get_trials(deepcopy=False, states=states)]


@contextlib.contextmanager
def database_errors(path: Path, *others: type[Exception]) -> Iterator[None]:
    """Turn what Optuna, SQLAlchemy and SQLite raise about the database `path`, and `others`, into a
    `StorageError` of one line. The block must use no other database."""
    faults: tuple[type[Exception], ...] = (*_FAULTS, *others)
    try:
        yield
    except faults as error:
        reason = first_line(getattr(error, "orig", None) or error.__cause__ or error)
        raise StorageError(
            f"{path}: the trials cannot be read or written: {reason}. Free some space, or correct "
            "the permissions. Or move the file away: the search then begins anew"
        ) from error


def open_study(path: Path, key: str, pruning: Pruning) -> optuna.Study:
    """The study `key` of the database `path`; both are created if they are missing. A database that
    cannot be used is a `StorageError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # Optuna has no error of its own for tables of another version, or with values of another kind.
    with database_errors(path, RuntimeError, ValueError, LookupError, TypeError):
        storage = optuna.storages.RDBStorage(
            f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 60}}
        )
        return optuna.create_study(
            storage=storage,
            pruner=optuna.pruners.MedianPruner(pruning.after_trials, pruning.after_full_epochs),
            study_name=key,
            direction="maximize",
            load_if_exists=True,
        )
