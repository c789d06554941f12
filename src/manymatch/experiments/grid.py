"""What an experiment runs: points times seeds, as a file in `experiments/` or options state them.

file or options -> plan -> points -> the experiment of one kind, which `engine.perform` runs
"""

import itertools
import math
import os
import pkgutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

from pydantic import Field, model_validator

from manymatch.config.layout import Layout
from manymatch.config.names import checked_name
from manymatch.config.strict import Strict, read_yaml, validate, yaml_value
from manymatch.results.experiments import value_text
from manymatch.util.errors import ConfigError, nearest
from manymatch.util.regular_file import resolved

if TYPE_CHECKING:
    from manymatch.experiments.engine import Experiment

Settings = dict[str, Any]
"""Values of settings by key."""

_MOST_RUNS = 10_000
PRESET = "preset"
"""The setting whose value is the name of a preset."""


class Plan(Strict):
    """The keys that the files of all kinds of experiments share.

    The points of an experiment are either the named `points` or, as a grid, every combination of
    the values in `over`.
    """

    experiment: str
    """The kind of the experiment: a key of `KINDS`."""
    about: str = ""
    """One sentence for the report: the question, and the table of the paper that asks it."""
    set: Settings = Field(default_factory=dict)
    """The settings that every point has."""
    over: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    points: dict[Annotated[str, Field(min_length=1)], Settings] = Field(default_factory=dict)
    seeds: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = Field(default=[0])

    def resolved(self, where: str, changed: bool, presets: Path) -> Self:
        """The plan of the file `where` as it is run. A kind whose file serves several data sets
        picks one here. `changed`: the settings differ from those of a file in `experiments/`.
        `presets` is the folder of the data sets' presets."""
        return self

    @model_validator(mode="after")
    def _check_points(self) -> Self:
        most_points = max(len(self.points), math.prod(map(len, self.over.values())))
        if most_points * len(self.seeds) > _MOST_RUNS:
            raise ValueError(
                f"more than {_MOST_RUNS:,} runs (points times seeds). Vary fewer settings, or give "
                "fewer seeds"
            )
        try:
            values = [(key, value_text(value)) for key in self.over for value in self.over[key]]
        except TypeError:
            raise ValueError("'over': a value is neither a number, text, list nor group") from None
        if bool(self.over) == bool(self.points):
            raise ValueError("the plan needs either 'over' (a grid) or 'points' (named settings)")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError("'seeds' lists a seed twice. Remove one of the two")
        if len(set(values)) < len(values):
            raise ValueError("'over' lists a value twice. Remove one of the two")
        for key in self.set:
            same = {key, f"model.{key}", key.removeprefix("model.")}  # the prefix is optional
            if all(same & point.keys() for point in self.points.values() or [self.over]):
                raise ValueError(f"'{key}' is set for all points, but each has a value of its own")
        return self


class ComparedPlan(Plan):
    """A plan whose points are compared with one of them."""

    baseline: str | None = None
    """The label of the point that the others are compared with."""

    def labels_mentioned(self) -> list[str]:
        """The labels of points that other keys of the plan mention."""
        return [self.baseline] if self.baseline else []

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        labels = [point.label for point in points(self)]
        for label in self.labels_mentioned():
            if label not in labels:
                raise ValueError(f"no point is called '{label}'{nearest(label, labels)}")
        return self


class Point(NamedTuple):
    """One row of the table of results: its label and the settings that make the point."""

    label: str
    settings: Settings


def points(plan: Plan) -> list[Point]:
    """The points in the order of the file. In a grid the last key changes fastest.

    A label of a grid has the last part of each key, or the whole key where the last part is
    ambiguous or vague.
    """
    if plan.points:
        return [Point(label, settings) for label, settings in plan.points.items()]
    last_parts = {key: key.rpartition(".")[2] for key in plan.over}
    count = Counter([*last_parts.values(), "name", "size", "module"])
    names = {key: last if count[last] == 1 else key for key, last in last_parts.items()}

    def label(settings: Settings) -> str:
        return ", ".join(
            value_text(value) if key == PRESET else f"{names[key]}={value_text(value)}"
            for key, value in settings.items()
        )

    combinations = itertools.product(*plan.over.values())
    grid = [dict(zip(plan.over, values, strict=True)) for values in combinations]
    return [Point(label(settings), settings) for settings in grid]


@dataclass(frozen=True)
class Options:
    """The options of the command `experiment`, for all kinds of experiments."""

    dataset: str | None = None
    """Instead of the data set of the file."""
    seeds: str | None = None
    """Instead of the seeds of the file, e.g. "0,1,2"."""
    settings: Settings = field(default_factory=dict)
    """Settings of every point, besides those of the file."""
    jobs: int | None = None
    """Runs at a time. None: one for each GPU or, without GPUs, for each core."""
    device: str = "auto"
    """auto, cpu, cuda, or one GPU such as cuda:1."""
    keep: bool = False
    """Whether the trained models stay in the folders of the runs."""
    accept_stale: bool = False
    """Whether results that other source code made count as finished."""
    extend: bool = False
    """Whether the runs in files of results count as finished."""
    split: str | None = None
    """The split that models are evaluated on. None: that of params.yaml."""


DEFAULTS = Options()

KINDS = {
    "presets": "manymatch.experiments.presets:PresetExperiment",
    "synthetic": "manymatch.experiments.synthetic:SyntheticPairs",
    "sketches": "manymatch.experiments.sketches:SketchesToImages",
}
"""The class of each kind. A file states its kind as `experiment`; without that it is `presets`."""


def experiment_of_file(
    path: Path, layout: Layout, options: Options = DEFAULTS
) -> "Experiment[Any, Any]":
    """The experiment in a YAML file. Its name is the file's name without the kind in front.

    Raises:
        ConfigError: the file is missing or faulty, or an option does not fit the kind.
    """
    if not os.path.lexists(path):
        names = [file.name for file in path.parent.glob("*.yaml")]
        raise ConfigError(f"{path}: no such file{nearest(path.name, names)}")
    stated = read_yaml(path)
    kind = str(stated.get("experiment", "presets"))
    if kind not in KINDS:
        raise ConfigError(f"{path}: experiment: unknown kind '{kind}'{nearest(kind, KINDS)}")
    experiment_type: type[Experiment[Any, Any]] = pkgutil.resolve_name(KINDS[kind])
    device = options.device != "auto"
    given = {"--dataset": options.dataset, "--device": device, "--keep": options.keep}
    for option, value in given.items():
        if value and option not in experiment_type.options_of_kind:
            raise ConfigError(
                f"{option}: an experiment of the kind '{kind}' does not have this option. "
                "Leave the option out"
            )
    plan = validate(experiment_type.plan_type, stated, str(path))
    changes: dict[str, Any] = {"set": {**plan.set, **options.settings}}
    if options.dataset:
        changes["dataset"] = options.dataset
    if options.seeds:
        changes["seeds"] = yaml_value(f"[{options.seeds}]", f"--seeds {options.seeds}")
    plan = validate(experiment_type.plan_type, {**stated, **changes}, str(path))
    changed = bool(options.settings) or resolved(path) != resolved(layout.experiment(path.stem))
    plan = plan.resolved(str(path), changed, layout.presets)
    name = checked_name(path.stem.removeprefix(f"{kind}-"), str(path))
    return experiment_type(name, plan, layout, options)


def experiment_of_options(
    presets: Sequence[str], over: Sequence[str], layout: Layout, options: Options = DEFAULTS
) -> "Experiment[Any, Any]":
    """The experiment on presets that the options of the command line describe.

    `presets` are the preset to vary, or several presets to compare; `over` has `KEY=V1,V2` for each
    key that varies, the values as YAML. A faulty option is a `ConfigError`.
    """
    grid: dict[str, Any] = {PRESET: list(presets)} if len(presets) > 1 else {}
    for text in over:
        key, _, values = text.partition("=")
        if not (key and values):
            raise ConfigError(f"--over {text}: expected KEY=VALUE,VALUE")
        if key in grid:
            raise ConfigError("--over: a key is given twice. Give all its values in one --over")
        grid[key] = yaml_value(f"[{values}]", f"--over {text}")
    if not grid:
        raise ConfigError("experiment: nothing varies. Name more presets or --over KEY=V1,V2")
    stated = {
        "dataset": options.dataset or "scenes",
        "preset": presets[0] if len(presets) == 1 else None,
        "set": options.settings,
        "over": grid,
        "seeds": yaml_value(f"[{options.seeds or 0}]", f"--seeds {options.seeds}"),
    }
    experiment_type: type[Experiment[Any, Any]] = pkgutil.resolve_name(KINDS["presets"])
    plan = validate(experiment_type.plan_type, stated, "experiment")
    name = checked_name("-".join([*presets, *(key for key in grid if key != PRESET)]), "--over")
    if layout.experiment(name).is_file():  # whose results the file of results would replace
        name += "-options"
    return experiment_type(name, plan, layout, options)
