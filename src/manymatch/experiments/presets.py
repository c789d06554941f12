"""Experiments on presets: a point is a preset with some settings changed, a run trains a model."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from manymatch.config.layout import Layout
from manymatch.config.names import Name, preset_path
from manymatch.config.params import Elements, read_params
from manymatch.config.preset import Preset, read_preset
from manymatch.datasets import DATASETS
from manymatch.evaluation.embedded_model import setting_of
from manymatch.evaluation.protocols import protocol_modules
from manymatch.experiments.engine import Experiment, Numbers, Row, Run, key_of
from manymatch.experiments.grid import PRESET, Plan, Point, points
from manymatch.experiments.preset_runs import (
    STAGES,
    full_keys,
    portable_inputs,
    run_preset,
    train_and_evaluate,
    training_inputs,
    training_run,
)
from manymatch.methods import entry_point
from manymatch.results import experiments as results
from manymatch.results.experiments import Claims, unknown_label
from manymatch.shards.index import read_index
from manymatch.util import files
from manymatch.util.code_hash import code_hash
from manymatch.util.errors import ConfigError, DataError, nearest


class PresetPlan(Plan):
    """Every point is trained from a preset.

    A key of a point's settings is a dotted key of the preset (`training.epochs`), a dotted key of
    the model (`similarity.alpha`, short for `model.similarity.alpha`), or `preset`.
    """

    experiment: Literal["presets"] = "presets"
    dataset: Name = "scenes"
    preset: Name | dict[Name, Name] | None = None
    """The preset that is varied: one for all data sets or one for each data set. None if every
    point names a preset. The setting `preset` of a point has the same two forms."""
    elements: Elements = Elements()
    """Selections of set elements that are evaluated besides each element alone, as in `evaluation`
    of params.yaml: `images: [[1, 3, 4]]` leaves out element 2 of 4."""
    published: dict[Name, str] = Field(default_factory=dict)
    """For each data set, the table or figure of a paper that consists of these points ("DivE,
    table 4"). On these data sets a point keeps the mark of its preset, which may be
    `reproduced`."""
    claims: Claims = Field(default_factory=dict)
    """What the papers claim of the points; the report judges each claim (`results.experiments`)."""

    def resolved(self, where: str, changed: bool, presets: Path) -> Self:
        """The plan with the presets of its data set, and without `published` if it is `changed`. A
        point that names presets for other data sets only is left out. A data set that nobody knows
        is a `ConfigError`."""
        known = {*DATASETS, *(folder.name for folder in presets.glob("*/"))}
        given = _named(self.preset, *(point.get(PRESET) for point in self.points.values()))
        for key, named in {"preset": given, "published": self.published}.items():
            if unknown := next((name for name in named if name not in known), None):
                raise ConfigError(
                    f"{where}: {key}: no data set '{unknown}'{nearest(unknown, known)}"
                )
        preset = self._here(self.preset)
        points = {
            label: point | {PRESET: self._here(point[PRESET])} if PRESET in point else point
            for label, point in self.points.items()
        }
        points = {
            label: point for label, point in points.items() if point.get(PRESET, "") is not None
        }
        no_preset = self.preset is not None and preset is None and PRESET not in self.set
        if no_preset or (self.points and not points):
            raise ConfigError(
                f"{where}: no preset for data set '{self.dataset}'. Choose a data set of the file "
                f"({', '.join(datasets(self))}) or name a preset with --set preset=NAME"
            )
        published = {} if changed else self.published
        return self.model_copy(update={"preset": preset, "points": points, "published": published})

    def _here(self, preset: Any) -> Any:
        """The name of the preset on the data set of the plan; None if the data set has none."""
        return preset.get(self.dataset) if isinstance(preset, dict) else preset

    @model_validator(mode="after")
    def _check_presets(self) -> Self:
        settings = [{**self.set, **point} for point in (self.over, *self.points.values())]
        if any("seed" in point for point in settings):
            raise ValueError("'seed' is no setting of a point. List the seeds in 'seeds'")
        grid, *named = settings
        if self.preset is None and any(PRESET not in point for point in (named or [grid])):
            raise ValueError("a point has no preset. Give 'preset', or vary the preset")
        if fault := unknown_label(self.claims, [point.label for point in points(self)]):
            raise ValueError(fault)
        return self


def datasets(plan: PresetPlan) -> list[str]:
    """The data sets that `plan` names in `preset` or, without that, in its points' `preset`; none
    if one preset serves all data sets."""
    points = [settings.get(PRESET) for settings in plan.points.values()]
    return _named(*(points if plan.preset is None else [plan.preset]))


def _named(*presets: Any) -> list[str]:
    """The data sets that presets name."""
    names = [dataset for preset in presets if isinstance(preset, dict) for dataset in preset]
    return list(dict.fromkeys(names))


class PresetExperiment(Experiment[PresetPlan, Preset]):
    """Writes `reports/experiments/DATASET/NAME.json`."""

    kind = "presets"
    plan_type = PresetPlan
    options_of_kind = frozenset({"--dataset", "--device", "--keep"})

    @cached_property
    def split(self) -> str:
        """The split that the models are evaluated on."""
        return self.options.split or read_params(self.layout.params).evaluation.split

    def settings(self, point: Point, seed: int) -> Preset:
        return preset_of(self.layout, self.plan, point, seed)

    def inputs(self, settings: Preset) -> dict[str, Any]:
        layout, dataset = self.layout, self.plan.dataset
        shards = layout.shards(dataset, settings.features)
        read_index(shards).split(self.split)
        tables = {"captions": layout.captions(dataset), "relevance": layout.relevance(dataset)}
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
            (origins[origin], made["sources"], {key: made[key] for key in made if key != "seed"})
            for point in self._recorded_points()
            for made in point["runs"]
            if (origin := made.get("origin")) in origins
        ]

    def _recorded_points(self) -> list[dict[str, Any]]:
        """The points of all files of results on the data set."""
        return [
            point
            for path in results.Experiment.paths(self.layout.reports)
            if path.parent.name == self.plan.dataset
            for point in results.Experiment.read(path).to_json()["points"]
        ]

    def _origin(self, settings: Preset) -> str:
        """The hash of `inputs` without the last bits of the features, in which machines differ."""
        inputs = self.inputs(settings)
        return key_of(**portable_inputs(self.layout, self.plan.dataset, settings, inputs))

    def code(self, settings: Preset) -> str:
        return code_hash(*STAGES, entry_point(settings.method), *protocol_modules())

    def run(self, settings: Preset, seed: int, folder: Path) -> Numbers:
        layout, dataset = self.layout, self.plan.dataset
        tuned = training_run(layout, dataset, settings, training_inputs(layout, dataset, settings))
        known = tuned.numbers(self.options.accept_stale, needs_model=True) is not None
        trained = tuned.model if known and not self.options.keep else None
        elements = self.plan.elements
        numbers = train_and_evaluate(
            settings, layout, dataset, self.split, folder, trained, elements
        )
        return {**numbers, "sources": self.code(settings), "origin": self._origin(settings)}

    def expected_seconds(self, settings: Preset) -> float | None:
        rates = [
            made["seconds"] / made["epochs"]
            for point in self._recorded_points()
            if point.get("resolved", {}).get("method") == settings.method
            for made in point["runs"]
            if made.get("seconds") and made.get("epochs")
        ]
        return median(rates) * settings.training.epochs if rates else None

    def headline(self, numbers: Numbers) -> str:
        seconds = f", trained in {numbers['seconds']:.0f} s" if numbers["seconds"] else ""
        return f"rsum {numbers['metrics']['rsum']:.1f}{seconds}"

    def result(self, rows: Sequence[Row]) -> results.Experiment:
        _, numbers = rows[0].runs[0]
        marks = {
            setting_of(preset, read_index(self.layout.shards(self.plan.dataset, preset.features)))
            for preset in (run.settings for row in rows for run, _ in row.runs)
        }
        result = {
            "name": self.name,
            **self.plan.model_dump(include={"about", "dataset", "preset", "set", "seeds"}),
            "keys": list(self.plan.over),
            "split": self.split,
            "images": numbers["images"],
            "captions": numbers["captions"],
            # Reproduced only if every run is.
            "setting": marks.pop() if len(marks) == 1 else "small-scale",
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


def preset_of(layout: Layout, plan: PresetPlan, point: Point, seed: int) -> Preset:
    """The preset of one run. A point that a paper printed keeps the mark of its preset. An unknown
    preset or key is a `ConfigError`, and so is a value that does not fit."""
    settings = {**plan.set, **point.settings}
    name: Any = settings.get(PRESET, plan.preset)
    path = preset_path(layout.presets, plan.dataset, name)
    stated = read_preset(path)
    method = str(settings.get("method", stated.method))
    overrides = full_keys(plan.set, method) | full_keys(point.settings, method)
    preset = run_preset(path, {**overrides, "seed": seed})
    if plan.dataset in plan.published:
        preset = preset.model_copy(update={"setting": stated.setting})
    return preset
