"""An ablation from the words of a command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manymatch.config.layout import Layout
from manymatch.config.strict import validate, yaml_value
from manymatch.experiments.ablation.plan import PRESET, Plan, Settings, checked, read_plan
from manymatch.system.errors import ConfigError


def plan_from_file(
    path: Path, layout: Layout, dataset: str | None = None, settings: Settings | None = None
) -> tuple[str, Plan]:
    """The ablation in a file, and its name; on another data set, if one is given, and with
    `settings` that every point has.

    The points are those of a paper only if the file lies in `ablations/` and nothing is changed.
    """
    plan = read_plan(path, dataset, settings)
    if settings or path.resolve() != layout.plan(path.stem).resolve():
        plan = plan.model_copy(update={"published": {}})
    return path.stem, plan


def plan_from_options(
    preset: str | None, over: list[str], seeds: str, dataset: str, settings: Settings
) -> tuple[str, Plan]:
    """The ablation that options describe, and its name.

    Args:
        over: `KEY=V1,V2` each; the values are YAML.
        seeds: `0,1,2`.
        settings: what every point has.
    """
    if not over:
        raise ConfigError(
            "ablate: what varies? give --over KEY=V1,V2 or --file ablations/NAME.yaml"
        )
    grid = dict(_values(text) for text in over)
    if len(grid) < len(over):
        raise ConfigError("ablate: a key stands in two --over")
    value = {
        "dataset": dataset,
        "preset": preset,
        "set": settings,
        "over": grid,
        "seeds": _list(seeds, f"--seeds {seeds}"),
    }
    name = "-".join([preset or "presets", *(key for key in grid if key != PRESET)])
    return name, checked(validate(Plan, value, "ablate"), "ablate")


def _values(text: str) -> tuple[str, list[Any]]:
    key, equals, values = text.partition("=")
    if not (key and equals and values):
        raise ConfigError(f"--over {text}: expected KEY=VALUE,VALUE")
    return key, _list(values, f"--over {text}")


def _list(text: str, where: str) -> list[Any]:
    """YAML values that commas separate."""
    found: list[Any] = yaml_value(f"[{text}]", where)
    return found
