"""Experiments on synthetic pairs (SwAMP, appendix E): a run trains two small networks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field

from manymatch.batch.parallel_map import single_core
from manymatch.config.strict import validate
from manymatch.experiments.experiment import Experiment, Row
from manymatch.experiments.plan import ComparedPlan, Point
from manymatch.experiments.run_folder import Numbers
from manymatch.experiments.synthetic import run as training
from manymatch.experiments.synthetic.run import RunSettings
from manymatch.results.over_seeds import Kind as Relevance
from manymatch.results.over_seeds import SyntheticExperiment
from manymatch.util.code_hash import code_hash


class SyntheticPlan(ComparedPlan):
    """The settings of a point are those of `RunSettings`."""

    experiment: Literal["synthetic"]
    published: dict[str, dict[Relevance, float]] = Field(default_factory=dict)
    """R@1 that a paper prints, for each point."""

    def labels_mentioned(self) -> list[str]:
        return [*super().labels_mentioned(), *self.published]


class SyntheticPairs(Experiment[SyntheticPlan, RunSettings]):
    """Writes `reports/synthetic/NAME.json`."""

    kind = "synthetic"
    plan_type = SyntheticPlan

    def settings(self, point: Point, seed: int) -> RunSettings:
        return validate(RunSettings, {**self.plan.set, **point.settings}, "settings")

    def inputs(self, settings: RunSettings) -> dict[str, Any]:
        return settings.model_dump(mode="json")

    def code(self, settings: RunSettings) -> str:
        return code_hash(training.__name__)

    def run(self, settings: RunSettings, seed: int, folder: Path) -> Numbers:
        # A sharp softmax makes many subnormal numbers, which slow a CPU down several times.
        torch.set_flush_denormal(True)
        with single_core():  # sums depend on the number of cores that share them
            return training.run(settings, seed)

    def headline(self, numbers: Numbers) -> str:
        return f"R@1 of pairs {numbers['pair']['r1']:.1f}"

    def result(self, rows: Sequence[Row]) -> SyntheticExperiment:
        stated = {"about", "baseline", "published", "seeds"}
        result = {
            "name": self.name,
            **self.plan.model_dump(mode="json", include=stated),
            "points": [row.as_json() for row in rows],
        }
        return SyntheticExperiment.model_validate(result)
