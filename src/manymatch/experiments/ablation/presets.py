"""From a point of an ablation to the preset that trains it."""

from __future__ import annotations

from pathlib import Path

from manymatch.config.preset import Preset, preset_path, read_preset
from manymatch.experiments.ablation.plan import PRESET, Plan, Point, points
from manymatch.methods import check_model, method_class
from manymatch.system.errors import ConfigError, nearest


def check_plan(presets: Path, plan: Plan) -> None:
    """Every point has a preset, or it is a `ConfigError` that names the point."""
    for point in points(plan):
        try:
            preset_of(presets, plan, point, plan.seeds[0])
        except ConfigError as fault:
            raise ConfigError(f"point '{point.label}': {fault}") from None


def preset_of(presets: Path, plan: Plan, point: Point, seed: int) -> Preset:
    """The preset of one run; a point that a paper printed keeps the mark of its preset.

    Args:
        presets: folder of the presets (`presets/DATASET/NAME.yaml`).

    Raises:
        ConfigError: no such preset or key (the nearest is named), or a value that does not fit.
    """
    settings = {**plan.set, **point.settings}
    path = preset_path(presets, plan.dataset, settings.pop(PRESET, plan.preset))
    stated = read_preset(path)
    method = settings.get("method", stated.method)
    overrides = {_full_key(key, method): value for key, value in settings.items()}
    preset = read_preset(path, {**overrides, "seed": seed})
    if plan.dataset in plan.published:
        preset = preset.model_copy(update={"setting": stated.setting})
    check_model(preset.method, preset.model)
    if preset.training.devices not in (1, "auto"):
        raise ConfigError("training.devices: an ablation trains each run on one device; set auto")
    return preset


def _full_key(key: str, method: str) -> str:
    """`key` as the preset has it: what is no part of a preset is a setting of its model."""
    first = key.partition(".")[0]
    if first in Preset.model_fields:
        return key
    of_model = method_class(method).Settings.model_fields
    if first not in of_model:
        known = {PRESET, *Preset.model_fields, *of_model} - {"seed"}
        raise ConfigError(f"unknown key '{key}' of method '{method}'{nearest(first, known)}")
    return f"model.{key}"
