"""What an experiment on synthetic pairs consists of: a file in `synthetic/`."""

from __future__ import annotations

from collections.abc import Set as Names
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, model_validator

from manymatch.config.strict import Strict, read_yaml, validate
from manymatch.experiments.ablation.plan import Seed, Settings
from manymatch.experiments.synthetic.settings import RunSettings
from manymatch.system.errors import ConfigError, nearest

Kind = Literal["pair", "class"]
"""What counts as right: the own partner alone, or any point of the same class."""


class Points(Strict):
    """Named settings, each run with every seed."""

    about: str = ""
    set: Settings = Field(default_factory=dict)
    """What all points have in common."""
    points: Annotated[dict[str, Settings], Field(min_length=1)]
    seeds: Annotated[list[Seed], Field(min_length=1)]
    baseline: str | None = None
    """The point that the others are compared with."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError("a seed stands twice in 'seeds'")
        for name in sorted(self._named() - self.points.keys()):
            raise ValueError(f"no point is called '{name}'{nearest(name, self.points)}")
        return self

    def _named(self) -> Names:
        """The points that other settings name."""
        return {self.baseline} if self.baseline else frozenset()


class Experiment(Points):
    """Of synthetic pairs."""

    published: dict[str, dict[Kind, float]] = Field(default_factory=dict)
    """R@1 that a paper prints, by point."""

    def _named(self) -> Names:
        return super()._named() | self.published.keys()


Plan = TypeVar("Plan", bound=Points)
Each = TypeVar("Each", bound=Strict)


def read_experiment(path: Path, seeds: str | None = None) -> Experiment:
    """The experiment on synthetic pairs in a YAML file; see `read_points`."""
    return read_points(Experiment, path, seeds)


def read_points(kind: type[Plan], path: Path, seeds: str | None = None) -> Plan:
    """The experiment in a YAML file; `seeds` ("0,1") instead of its own. A fault is a
    `ConfigError` that names file and key."""
    if not path.is_file():
        known = [file.name for file in path.parent.glob("*.yaml")]
        raise ConfigError(f"{path}: no such file{nearest(path.name, known)}")
    value = read_yaml(path) | ({} if seeds is None else {"seeds": seeds.split(",")})
    return validate(kind, value, str(path))


def run_settings(experiment: Experiment) -> dict[str, RunSettings]:
    """The settings of each point on synthetic pairs; see `settings_of`."""
    return settings_of(RunSettings, experiment)


def settings_of(kind: type[Each], experiment: Points) -> dict[str, Each]:
    """The settings of each point, by its name; a fault is a `ConfigError` that names the point."""
    return {
        name: validate(kind, experiment.set | settings, f"point '{name}'")
        for name, settings in experiment.points.items()
    }
