"""Experiments on presets: a point is a preset with some settings changed, a run trains a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from manymatch.config.layout import Layout
from manymatch.config.params import read_params
from manymatch.config.preset import Preset, preset_path, read_preset
from manymatch.evaluation.embedded_model import setting_of
from manymatch.evaluation.protocols import protocol_modules
from manymatch.experiments.experiment import Experiment, Row
from manymatch.experiments.plan import PRESET, Point, Settings
from manymatch.experiments.presets.plan import PresetPlan
from manymatch.experiments.run_folder import Numbers, Run, key_of
from manymatch.methods import check_model, entry_point, method_class
from manymatch.results import experiments as results
from manymatch.shards.index import NAME as INDEX
from manymatch.shards.index import read_index
from manymatch.training.warm_start import find_source
from manymatch.util import files
from manymatch.util.code_hash import code_hash
from manymatch.util.errors import ConfigError, DataError, nearest

_STAGES = "manymatch.training.train", "manymatch.evaluation.evaluate"
_DEVICES, _ONE_DEVICE = "training.devices", (1, "auto")


class PresetExperiment(Experiment[PresetPlan, Preset]):
    """Writes `reports/experiments/DATASET/NAME.json`."""

    kind = "presets"
    plan_type = PresetPlan
    options_of_kind = frozenset({"--dataset", "--device", "--keep"})

    @cached_property
    def split(self) -> str:
        """The split that the models are evaluated on."""
        return read_params(self.layout.params).evaluation.split

    def settings(self, point: Point, seed: int) -> Preset:
        return preset_of(self.layout, self.plan, point, seed)

    def inputs(self, settings: Preset) -> dict[str, Any]:
        layout, dataset = self.layout, self.plan.dataset
        shards = layout.shards(dataset, settings.features)
        read_index(shards).split(self.split)
        tables = {
            "captions": layout.captions(dataset),
            "relevance": layout.relevance(dataset),
        }
        for path in (*tables.values(), layout.vocabulary(dataset)):
            if not path.is_file():
                raise DataError(f"{path}: no such file. Run the stage 'captions' first")
        elements = self.plan.elements.model_dump(mode="json", exclude_defaults=True)
        return {
            **({"elements": elements} if elements else {}),
            "preset": settings.model_dump(mode="json"),
            "split": self.split,
            **training_inputs(layout, dataset, settings),
            **{name: files.sha256(path) for name, path in tables.items()},
        }

    def recorded(self, runs: Sequence[Run]) -> list[tuple[Run, str, Numbers]]:
        origins = {self._origin(run.settings): run for run in runs}
        return [
            (
                origins[origin],
                made["sources"],
                {key: made[key] for key in made if key != "seed"},
            )
            for path in results.Experiment.paths(self.layout.reports)
            if path.parent.name == self.plan.dataset
            for point in results.Experiment.read(path).to_json()["points"]
            for made in point["runs"]
            if (origin := made.get("origin")) in origins
        ]

    def _origin(self, settings: Preset) -> str:
        """The hash of `inputs` without the last bits of the features, in which machines differ."""
        inputs = self.inputs(settings)
        return key_of(**portable_inputs(self.layout, self.plan.dataset, settings, inputs))

    def code(self, settings: Preset) -> str:
        return code_hash(*_STAGES, entry_point(settings.method), *protocol_modules())

    def run(self, settings: Preset, seed: int, folder: Path) -> Numbers:
        from manymatch.experiments.presets.run import train_and_evaluate

        layout, dataset = self.layout, self.plan.dataset
        tuned = training_run(layout, dataset, settings, training_inputs(layout, dataset, settings))
        known = tuned.numbers(self.options.accept_stale, needs_model=True) is not None
        trained = tuned.model if known and not self.options.keep else None
        elements = self.plan.elements
        numbers = train_and_evaluate(
            settings, layout, dataset, self.split, folder, trained, elements
        )
        return {**numbers, "sources": self.code(settings), "origin": self._origin(settings)}

    def headline(self, numbers: Numbers) -> str:
        seconds = f", trained in {numbers['seconds']:.0f} s" if numbers["seconds"] else ""
        return f"rsum {numbers['metrics']['rsum']:.1f}{seconds}"

    def result(self, rows: Sequence[Row]) -> results.Experiment:
        _, numbers = rows[0].runs[0]
        result = {
            "name": self.name,
            **self.plan.model_dump(include={"about", "dataset", "preset", "set", "seeds"}),
            "keys": list(self.plan.over),
            "split": self.split,
            "images": numbers["images"],
            "captions": numbers["captions"],
            "setting": self._mark(rows),
            "points": [
                {
                    "label": row.point.label,
                    "settings": row.point.settings,
                    "resolved": row.settings.model_dump(mode="json", exclude={"seed"}),
                    "runs": [{"seed": run.seed, **numbers} for run, numbers in row.runs],
                }
                for row in rows
            ],
        }
        return results.Experiment.model_validate(result)

    def _mark(self, rows: Sequence[Row]) -> str:
        """`reproduced` only if every run is."""
        presets = [run.settings for row in rows for run, _ in row.runs]
        marks = {
            setting_of(preset, read_index(self.layout.shards(self.plan.dataset, preset.features)))
            for preset in presets
        }
        return marks.pop() if len(marks) == 1 else "small-scale"


def training_inputs(layout: Layout, dataset: str, preset: Preset) -> dict[str, str]:
    """The hashes of the data that the training of `preset` reads."""
    start = find_source(preset, layout.models)
    return {
        "shards": files.sha256(layout.shards(dataset, preset.features) / INDEX),
        "vocabulary": files.sha256(layout.vocabulary(dataset)),
        "start": start.sha256 if start else "",
    }


def portable_inputs(
    layout: Layout, dataset: str, preset: Preset, inputs: dict[str, Any]
) -> dict[str, Any]:
    """`inputs` with what the method reads of the shards in place of their hash, because processors
    compute features with other last bits: the kind of the features, and the hash of the graphs.

    Raises:
        DataError: the method reads scene graphs, and the table of the graphs is missing.
    """
    same: dict[str, Any] = {
        "shards": read_index(layout.shards(dataset, preset.features)).attributes
    }
    if method_class(preset.method).reads_graphs:
        graphs = layout.scene_graphs(dataset)
        if not graphs.is_file():
            raise DataError(f"{graphs}: no such file. Run the stage 'scene-graphs' first")
        same["scene_graphs"] = files.sha256(graphs)
    return inputs | same


def training_run(
    layout: Layout, dataset: str, preset: Preset, inputs: dict[str, str], label: str = ""
) -> Run:
    """The run that only trains `preset`. `tune` does such runs, and keeps the best models."""
    key = key_of(preset=preset.model_dump(mode="json"), inputs=inputs)
    return Run(
        label=label,
        settings=preset,
        seed=preset.seed,
        code=code_hash(_STAGES[0], entry_point(preset.method)),
        folder=layout.experiment_runs("tuning") / key,
    )


def preset_of(layout: Layout, plan: PresetPlan, point: Point, seed: int) -> Preset:
    """The preset of one run. A point that a paper printed keeps the mark of its preset.

    Raises:
        ConfigError: a preset or key is unknown (the message names the nearest), or a value does
            not fit.
    """
    settings = {**plan.set, **point.settings}
    name: Any = settings.get(PRESET, plan.preset)
    path = preset_path(layout.presets, plan.dataset, name)
    if plan.tuned and layout.tuned_preset(plan.dataset, name).is_file():
        path = layout.tuned_preset(plan.dataset, name)
    stated = read_preset(path)
    method = str(settings.get("method", stated.method))
    overrides = full_keys(plan.set, method) | full_keys(point.settings, method)
    preset = run_preset(path, {**overrides, "seed": seed})
    if plan.dataset in plan.published:
        preset = preset.model_copy(update={"setting": stated.setting})
    check_run(preset)
    return preset


def run_preset(path: Path, overrides: Settings) -> Preset:
    """The preset `path` with `overrides`, for a run of an experiment. Each run has one device: the
    devices that the file asks for are those of `train`.

    Raises:
        ConfigError: a key is unknown or a value does not fit.
    """
    preset = read_preset(path, overrides, check_model)
    if preset.training.devices in _ONE_DEVICE or _DEVICES in overrides:
        return preset
    return read_preset(path, {**overrides, _DEVICES: "auto"}, check_model)


def check_run(preset: Preset) -> None:
    """Check that the method takes the settings of `preset`, and that one device trains the run.

    Raises:
        ConfigError: a setting of the model is wrong, or the plan asks for several devices.
    """
    check_model(preset.method, preset.model)
    if preset.training.devices not in _ONE_DEVICE:
        raise ConfigError(
            f"{_DEVICES}: an experiment trains each run on one device. Set it to 'auto'"
        )


def full_keys(settings: Settings, method: str) -> Settings:
    """The settings of the preset, without its name, by the keys that `full_key` gives.

    Raises:
        ConfigError: a key is unknown, or two keys are the same setting.
    """
    full: Settings = {}
    for key, value in settings.items():
        if key == PRESET:
            continue
        name = full_key(key, method)
        if name in full:
            raise ConfigError(f"'{name}' is given twice, also without 'model.'. Leave one out")
        full[name] = value
    return full


def full_key(key: str, method: str) -> str:
    """`key` as a key of the preset: a key that the preset does not have belongs to the model."""
    first = key.partition(".")[0]
    if first in Preset.model_fields:
        return key
    settings = method_class(method).Settings.model_fields
    if first not in settings:
        known = {PRESET, *Preset.model_fields, *settings} - {"seed"}
        raise ConfigError(f"unknown key '{key}' of method '{method}'{nearest(first, known)}")
    return f"model.{key}"
