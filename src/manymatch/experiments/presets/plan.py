"""The plan of an experiment on presets: which preset is varied, on which data set."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from manymatch.config.names import Name
from manymatch.config.params import Elements
from manymatch.experiments.plan import PRESET, Plan, points
from manymatch.results.claims import Claims, unknown_label
from manymatch.util.errors import ConfigError


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
    tuned: bool = False
    """Whether a point is trained from PRESET_tuned, the preset that `tune` wrote, if that preset
    exists."""
    elements: Elements = Elements()
    """Selections of set elements that are evaluated besides each element alone, as in `evaluation`
    of params.yaml: `images: [[1, 3, 4]]` leaves out element 2 of 4."""
    published: dict[Name, str] = Field(default_factory=dict)
    """For each data set, the table or figure of a paper that consists of these points ("DivE,
    table 4"). On these data sets a point keeps the mark of its preset, which may be
    `reproduced`."""
    claims: Claims = Field(default_factory=dict)
    """What the papers claim of the points; the report judges each claim (`results.claims`)."""

    def resolved(self, where: str, changed: bool) -> Self:
        """The plan with the presets of its data set, and without `published` if it is `changed`.

        A point that names presets for other data sets only is left out.

        Raises:
            ConfigError: the plan names no preset for its data set.
        """
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
                f"{where}: no preset for dataset '{self.dataset}'. Choose a dataset of the file "
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
    """The data sets that `plan` names in `preset` or, without that, in its points' `preset`.

    The list is empty if one preset serves all data sets.
    """
    points = [settings.get(PRESET) for settings in plan.points.values()]
    presets = points if plan.preset is None else [plan.preset]
    names = [dataset for preset in presets if isinstance(preset, dict) for dataset in preset]
    return list(dict.fromkeys(names))
