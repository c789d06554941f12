"""What an ablation varies: a file in `ablations/`, or what stands on the command line."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from manymatch.config.params import Name
from manymatch.config.strict import Strict, read_yaml, validate
from manymatch.system.errors import ConfigError, nearest

Seed = Annotated[int, Field(ge=0)]
Settings = dict[str, Any]
"""Values by dotted key: of a preset (`training.epochs`), of its model (`similarity.alpha`, short
for `model.similarity.alpha`), or `preset`."""

PRESET = "preset"


class Plan(Strict):
    """One ablation: every combination of the values in `over`, or every one of the named `points`,
    each trained with every seed."""

    about: str = ""
    """One sentence for the report: what is asked, and which table of which paper asked it."""
    dataset: Name = "scenes"
    preset: Name | dict[Name, Name] | None = None
    """The preset that is varied, everywhere or by data set; None where each point names its own.
    The setting `preset` of a point has the same two forms."""
    published: dict[Name, str] = Field(default_factory=dict)
    """By data set the table or figure that the points are: "DivE, table 4". On that data set a
    point keeps the mark of its preset, which may be `reproduced`."""
    set: Settings = Field(default_factory=dict)
    """What every point has in common and the preset has not."""
    over: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    points: dict[str, Settings] = Field(default_factory=dict)
    seeds: Annotated[list[Seed], Field(min_length=1)] = Field(default=[0])


@dataclass(frozen=True)
class Point:
    """One row of the table."""

    label: str
    settings: Settings


def read_plan(path: Path, dataset: str | None = None, settings: Settings | None = None) -> Plan:
    """The ablation in a YAML file, on the data set of the file or another, with `settings` that
    every point has; a fault is a `ConfigError` that names file and key."""
    if not path.is_file():
        known = [file.name for file in path.parent.glob("*.yaml")]
        raise ConfigError(f"{path}: no such file{nearest(path.name, known)}")
    plan = validate(Plan, read_yaml(path), str(path))
    changed = {"dataset": dataset or plan.dataset, "set": {**plan.set, **(settings or {})}}
    return checked(_on_dataset(plan.model_copy(update=changed), str(path)), str(path))


def datasets(plan: Plan) -> list[str]:
    """The data sets that `plan` names, in the order of the file: those of its preset, or of its
    points where each has its own; none if a preset has one name for all data sets."""
    points = [settings.get(PRESET) for settings in plan.points.values()]
    presets = points if plan.preset is None else [plan.preset]
    named = [dataset for each in presets if isinstance(each, dict) for dataset in each]
    return list(dict.fromkeys(named))


def _on_dataset(plan: Plan, where: str) -> Plan:
    """`plan` with the presets of its data set. A point that names presets by data set is a point
    on these data sets only."""
    preset = _preset_on(plan.dataset, plan.preset)
    points = {
        label: {**settings, PRESET: _preset_on(plan.dataset, settings[PRESET])}
        if PRESET in settings
        else settings
        for label, settings in plan.points.items()
    }
    there = {label: each for label, each in points.items() if each.get(PRESET, "") is not None}
    if (plan.preset and not (preset or PRESET in plan.set)) or (points and not there):
        raise ConfigError(
            f"{where}: no preset for dataset '{plan.dataset}'; "
            f"the file names presets for {', '.join(datasets(plan))}"
        )
    return plan.model_copy(update={"preset": preset, "points": there})


def _preset_on(dataset: str, preset: Any) -> Any:
    """The name of a preset on a data set, None if there is none."""
    return preset.get(dataset) if isinstance(preset, dict) else preset


def checked(plan: Plan, where: str) -> Plan:
    """`plan`, if its parts fit together; else a `ConfigError` that begins with `where`."""
    settings = [{**plan.set, **point.settings} for point in points(plan)]
    values = [(key, value) for key, listed in plan.over.items() for value in map(_text, listed)]
    faults = {
        "give either 'over' (a grid) or 'points' (named settings)": bool(plan.over)
        == bool(plan.points),
        "'seed' is no setting of a point; list the seeds in 'seeds'": any(
            "seed" in found for found in settings
        ),
        "a seed stands twice in 'seeds'": len(set(plan.seeds)) < len(plan.seeds),
        "a value stands twice in 'over'": len(set(values)) < len(values),
        "which preset? give 'preset', or vary it": plan.preset is None
        and any(PRESET not in found for found in settings),
    }
    for fault, found in faults.items():
        if found:
            raise ConfigError(f"{where}: {fault}")
    return plan


def points(plan: Plan) -> list[Point]:
    """The rows in the order of the file; of a grid, the last key changes fastest."""
    if plan.points:
        return [Point(label, settings) for label, settings in plan.points.items()]
    names = _short_names(list(plan.over))
    combinations = itertools.product(*plan.over.values())
    grid = [dict(zip(plan.over, values, strict=True)) for values in combinations]
    return [Point(_label(settings, names), settings) for settings in grid]


def _label(settings: Settings, names: dict[str, str]) -> str:
    return ", ".join(
        _text(value) if key == PRESET else f"{names[key]}={_text(value)}"
        for key, value in settings.items()
    )


def _short_names(keys: Sequence[str]) -> dict[str, str]:
    """The last part of each key, or all of it where two end alike or it says too little."""
    ends = {key: key.rpartition(".")[2] for key in keys}
    count = Counter([*ends.values(), "name", "size", "module"])
    return {key: end if count[end] == 1 else key for key, end in ends.items()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
