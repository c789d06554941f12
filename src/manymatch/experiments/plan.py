"""The plan of an experiment: its points, each of which is run with every seed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from manymatch.config.strict import Strict
from manymatch.results.experiments import value_text
from manymatch.util.errors import nearest

Seed = Annotated[int, Field(ge=0)]
Settings = dict[str, Any]
"""Values of settings by key."""

PRESET = "preset"
"""The setting whose value is the name of a preset."""


class Plan(Strict):
    """The keys that the files of all kinds of experiments share.

    The points of an experiment are either the named `points` or, as a grid, every combination of
    the values in `over`.
    """

    experiment: str
    """The kind of the experiment: a key of `experiments.kinds.KINDS`."""
    about: str = ""
    """One sentence for the report: the question, and the table of the paper that asks it."""
    set: Settings = Field(default_factory=dict)
    """The settings that every point has."""
    over: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    points: dict[str, Settings] = Field(default_factory=dict)
    seeds: Annotated[list[Seed], Field(min_length=1)] = Field(default=[0])

    def resolved(self, where: str, changed: bool) -> Self:
        """The plan as it is run; a kind whose file serves several data sets picks one here.

        Args:
            where: the file, for messages.
            changed: whether the settings differ from those of a file in `experiments/`.
        """
        return self

    @model_validator(mode="after")
    def _check_points(self) -> Self:
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


@dataclass(frozen=True)
class Point:
    """One row of the table of results: its label and the settings that make the point."""

    label: str
    settings: Settings


def points(plan: Plan) -> list[Point]:
    """The points in the order of the file. In a grid the last key changes fastest."""
    if plan.points:
        return [Point(label, settings) for label, settings in plan.points.items()]
    names = _short_names(list(plan.over))
    combinations = itertools.product(*plan.over.values())
    grid = [dict(zip(plan.over, values, strict=True)) for values in combinations]
    return [Point(_label(settings, names), settings) for settings in grid]


def _label(settings: Settings, names: dict[str, str]) -> str:
    return ", ".join(
        value_text(value) if key == PRESET else f"{names[key]}={value_text(value)}"
        for key, value in settings.items()
    )


def _short_names(keys: Sequence[str]) -> dict[str, str]:
    """The last part of each key. A key stays whole where its last part is ambiguous or vague."""
    last_parts = {key: key.rpartition(".")[2] for key in keys}
    count = Counter([*last_parts.values(), "name", "size", "module"])
    return {key: last if count[last] == 1 else key for key, last in last_parts.items()}
