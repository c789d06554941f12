"""The kinds of experiments; an experiment from a file or from options of the command line."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manymatch.config.layout import Layout
from manymatch.config.names import checked_name
from manymatch.config.strict import read_yaml, validate, yaml_value
from manymatch.experiments.experiment import DEFAULTS, Experiment, Options
from manymatch.experiments.plan import PRESET
from manymatch.util.errors import ConfigError, nearest

KINDS = {
    "presets": "manymatch.experiments.presets.experiment:PresetExperiment",
    "synthetic": "manymatch.experiments.synthetic.experiment:SyntheticPairs",
    "sketches": "manymatch.experiments.sketches.experiment:SketchesToImages",
}
"""The class of each kind. A file states its kind as `experiment`; without that it is `presets`."""


def experiment_of_file(
    path: Path, layout: Layout, options: Options = DEFAULTS
) -> Experiment[Any, Any]:
    """The experiment in a YAML file. Its name is the file's name without the kind in front.

    Raises:
        ConfigError: the file is missing or faulty, or an option does not fit the kind. The message
            names file and key, or the option.
    """
    if not path.is_file():
        names = [file.name for file in path.parent.glob("*.yaml")]
        raise ConfigError(f"{path}: no such file{nearest(path.name, names)}")
    stated = read_yaml(path)
    kind = str(stated.get("experiment", "presets"))
    if kind not in KINDS:
        raise ConfigError(f"{path}: experiment: unknown kind '{kind}'{nearest(kind, KINDS)}")
    experiment_type = _class_of(kind)
    given = {
        "--dataset": options.dataset,
        "--device": options.device != "auto",
        "--keep": options.keep,
    }
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
        changes["seeds"] = _list(options.seeds, f"--seeds {options.seeds}")
    plan = validate(experiment_type.plan_type, {**stated, **changes}, str(path))
    changed = bool(options.settings) or path.resolve() != layout.experiment(path.stem).resolve()
    plan = plan.resolved(str(path), changed)
    name = checked_name(path.stem.removeprefix(f"{kind}-"), str(path))
    return experiment_type(name, plan, layout, options)


def experiment_of_options(
    presets: Sequence[str], over: Sequence[str], layout: Layout, options: Options = DEFAULTS
) -> Experiment[Any, Any]:
    """The experiment on presets that the options of the command line describe.

    Args:
        presets: the preset to vary, or several presets to compare.
        over: `KEY=V1,V2` for each key that varies. The values are YAML.

    Raises:
        ConfigError: an option is faulty.
    """
    varied = [_values(text) for text in over]
    if len(presets) > 1:
        varied = [(PRESET, list(presets)), *varied]
    if not varied:
        raise ConfigError("experiment: nothing varies. Name more presets or --over KEY=V1,V2")
    grid = dict(varied)
    if len(grid) < len(varied):
        raise ConfigError("--over: a key is given twice. Give all its values in one --over")
    preset = presets[0] if len(presets) == 1 else None
    stated = {
        "dataset": options.dataset or "scenes",
        "preset": preset,
        "set": options.settings,
        "over": grid,
        "seeds": _list(options.seeds or "0", f"--seeds {options.seeds}"),
    }
    experiment_type = _class_of("presets")
    plan = validate(experiment_type.plan_type, stated, "experiment")
    name = checked_name("-".join([*presets, *(key for key in grid if key != PRESET)]), "--over")
    if layout.experiment(name).is_file():  # whose results the file of results would replace
        name += "-options"
    return experiment_type(name, plan, layout, options)


def _class_of(kind: str) -> type[Experiment[Any, Any]]:
    module, name = KINDS[kind].split(":")
    experiment_type: type[Experiment[Any, Any]] = getattr(importlib.import_module(module), name)
    return experiment_type


def _values(text: str) -> tuple[str, list[Any]]:
    key, equals, values = text.partition("=")
    if not (key and equals and values):
        raise ConfigError(f"--over {text}: expected KEY=VALUE,VALUE")
    return key, _list(values, f"--over {text}")


def _list(text: str, where: str) -> list[Any]:
    values: list[Any] = yaml_value(f"[{text}]", where)
    return values
