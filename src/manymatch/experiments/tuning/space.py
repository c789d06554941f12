"""A search space: which settings of a data set's presets are searched, and in which domains."""

import math
import os
from collections.abc import Callable
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from manymatch.config.names import Name, checked_name
from manymatch.config.preset import Count
from manymatch.config.strict import Strict, read_yaml, validate
from manymatch.experiments.grid import PRESET, Settings
from manymatch.util.errors import ConfigError, nearest

Scalar = bool | int | float | str | None


class Domain(Strict):
    """What a setting may be: a number from `low` to `high`, one of `values`, or one of `options`.

    An option is a name and the settings that the option stands for. Each of these settings is a
    value or a domain of its own, which is searched only with this option.
    """

    low: float | None = None
    high: float | None = None
    log: bool = False
    """Whether the logarithm of the number is searched evenly."""
    values: Annotated[tuple[Scalar, ...], Field(min_length=2)] | None = None
    options: "Annotated[dict[str, dict[str, Domain | Scalar]], Field(min_length=2)] | None" = None

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        ends = self.low is not None and self.high is not None
        half = (self.low is None) != (self.high is None)
        if half or [ends, self.values is not None, self.options is not None].count(True) != 1:
            raise ValueError("expected either 'low' and 'high', or 'values', or 'options'")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError("'low' must be below 'high'")
        if self.values is not None and len({*self.values}) < len(self.values):
            raise ValueError("'values' lists a value twice. Remove one of the two")
        if self.log and not (self.low is not None and self.low > 0):
            raise ValueError("'log' needs a range above 0")
        parts = [part for option in (self.options or {}).values() for part in option.values()]
        if any(isinstance(part, Domain) and part.options for part in parts):
            raise ValueError("an option has no options of its own. List all options side by side")
        return self

    def _parts(self, name: str) -> "dict[str, dict[str, Domain | Scalar]]":
        """The settings of each option. Without options, an option without a name has `name`."""
        return self.options or {"": {name: self}}

    def draw(self, trial: Any, name: str) -> Settings:
        """The settings that the Optuna `trial` draws; `name` is the key, or names the options."""
        option = trial.suggest_categorical(name, list(self.options)) if self.options else ""
        return {
            key: part._value(trial, _parameter(name, option, key))
            if isinstance(part, Domain)
            else part
            for key, part in self._parts(name)[option].items()
        }

    def _value(self, trial: Any, name: str) -> Any:
        if self.values is not None:
            return trial.suggest_categorical(name, self.values)
        return self._rounded(trial.suggest_float(name, self.low, self.high, log=self.log))

    def _rounded(self, number: float) -> float:
        """Three digits are exact enough, and a person can read the preset."""
        return min(max(float(f"{number:.3g}"), self.low or 0.0), self.high or 0.0)

    def samples(self, name: str) -> list[Settings]:
        """Settings that `draw` may give: each value and option, both ends of a range, and a number
        between them."""
        settings: list[Settings] = []
        for parts in self._parts(name).values():
            values = {
                key: part._sample_values() if isinstance(part, Domain) else [part]
                for key, part in parts.items()
            }
            count = max(map(len, values.values()), default=1)
            settings += [{k: v[i % len(v)] for k, v in values.items()} for i in range(count)]
        return settings

    def _sample_values(self) -> list[Any]:
        if self.values is not None:
            return list(self.values)
        low, high = self.low or 0.0, self.high or 0.0
        return [low, high, self._rounded(low + (high - low) / math.e)]

    def parameters(self, name: str, stated: Callable[[str], Any]) -> dict[str, Any]:
        """The parameters of an Optuna trial that leaves the settings as they are; empty if these
        lie outside of the domain. `stated` gives the value of a setting by its key."""
        for option, parts in self._parts(name).items():
            if all(
                part._holds(stated(key)) if isinstance(part, Domain) else part == stated(key)
                for key, part in parts.items()
            ):
                searched = [key for key, part in parts.items() if isinstance(part, Domain)]
                nested = {_parameter(name, option, key): stated(key) for key in searched}
                return {name: option, **nested} if option else nested
        return {}

    def _holds(self, value: Any) -> bool:
        if self.values is not None:
            return value in self.values
        number = isinstance(value, int | float) and math.isfinite(value)
        return number and (self.low or 0.0) <= value <= (self.high or 0.0)


class Pruning(Strict):
    """A trial ends after an epoch if its best rsum so far is below the median of the earlier
    trials after the same number of epochs at the full rate. The first `after_trials` trials and the
    first `after_full_epochs` epochs of a trial are free of the rule. Epochs of warm-up do not
    count: a trial that warms up is behind all others for so long."""

    after_trials: Count = 5
    after_full_epochs: Count = 5


class Repeats(Strict):
    """After the last trial the best `trials` are trained with so many `seeds` each. The best mean
    decides: the best of many single trainings had luck too."""

    trials: Count = 3
    seeds: Annotated[int, Field(ge=2, le=100)] = 3
    set: Settings = Field(default_factory=dict)
    """The settings in which these trainings and the tuned preset differ from the trials, such as
    more epochs."""


class Space(Strict):
    """The content of `experiments/spaces/DATASET.yaml`.

    The keys of `set`, `shared` and `methods` are those of an experiment's settings
    (`training.epochs`, or a setting of the model). The key of a domain with options is a free name.
    """

    like: str | None = None
    """The data set whose domains hold here too, and whose best settings are an early trial."""
    starts_from: dict[Name, Name] = Field(default_factory=dict)
    """For a preset, another preset of the data set whose best settings are an early trial."""
    set: Settings = Field(default_factory=dict)
    """The settings that all trials have."""
    pruning: Pruning = Pruning()
    repeats: Repeats | None = None
    domains: dict[str, Domain] = Field(default_factory=dict)
    """Domains that several methods share. `shared` and `methods` refer to a domain by its name."""
    shared: dict[str, Domain] = Field(default_factory=dict)
    """The settings that every method has, and their domains."""
    methods: dict[str, dict[str, Domain]]
    """The other settings of each method, and their domains."""

    @model_validator(mode="before")
    @classmethod
    def _insert_domains(cls, value: Any) -> Any:
        """Domains in place of their names."""
        domains, methods = value.get("domains", {}), value.get("methods")
        if not isinstance(domains, dict):
            return value

        def inserted(group: Any, where: str) -> Any:
            if not isinstance(group, dict):
                return group
            for key, name in group.items():
                if isinstance(name, str) and name not in domains:
                    raise ValueError(f"{where}: {key}: no domain '{name}'{nearest(name, domains)}")
            return {key: domains[d] if isinstance(d, str) else d for key, d in group.items()}

        if isinstance(methods, dict):
            value = value | {
                "methods": {
                    name: inserted(group, f"methods: {name}") for name, group in methods.items()
                }
            }
        return value | {"shared": inserted(value.get("shared", {}), "shared")}

    @model_validator(mode="after")
    def _refuse_presets(self) -> Self:
        groups = self.set, self.shared, *self.methods.values(), getattr(self.repeats, "set", {})
        if any(PRESET in group for group in groups):
            raise ValueError("'preset' is no setting of a trial. Name the presets in the command")
        return self

    def method_domains(self, method: str) -> dict[str, Domain]:
        """The domain of each setting of `method`, the shared settings first; a `ConfigError` if the
        space says nothing about the method."""
        if method not in self.methods:
            raise ConfigError(
                f"methods: no settings of '{method}' are searched{nearest(method, self.methods)}"
            )
        return self.shared | self.methods[method]

    def draw(self, method: str, trial: Any) -> Settings:
        """The settings that an Optuna trial draws."""
        domains = self.method_domains(method)
        return reduce(or_, (domain.draw(trial, key) for key, domain in domains.items()), {})

    def parameters(self, method: str, stated: Callable[[str], Any]) -> dict[str, Any]:
        """The parameters of a trial with the settings that `stated` gives by their keys, where
        these lie in their domains."""
        domains = self.method_domains(method)
        return reduce(or_, (one.parameters(key, stated) for key, one in domains.items()), {})


def _parameter(name: str, option: str, key: str) -> str:
    return f"{name}.{option}.{key}" if option else name


def read_space(path: Path) -> Space:
    """The search space in the file `path`.

    With the key `like: NAME`, the keys of NAME.yaml in the same folder hold besides, except
    `starts_from`, which names presets of the other data set. Of `set`, `shared`, `domains` and
    `methods` the parts hold that the file does not state itself.

    Raises:
        ConfigError: a file is missing or faulty.
    """
    if not os.path.lexists(path):
        raise ConfigError(f"{path}: no such file. Write it: the line 'like: scenes' is enough")
    stated = read_yaml(path)
    like = stated.get("like")
    if like is not None:
        other = read_yaml(path.with_name(f"{checked_name(str(like), f'{path}: like')}.yaml"))
        if "like" in other:
            raise ConfigError(f"{path}: like: {like}.yaml has a 'like' itself. Name another space")
        other.pop("starts_from", None)
        groups = [
            key
            for key, value in other.items()
            if isinstance(value, dict) and isinstance(stated.get(key, {}), dict)
        ]
        stated = other | stated | {key: other[key] | stated.get(key, {}) for key in groups}
    return validate(Space, stated, str(path))
