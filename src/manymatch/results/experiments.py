"""Experiments on presets, on synthetic pairs and on sketches: the metrics of each point with each
seed; and what the papers claim of the points. The claims stand in the experiment's file:

claims:
  MSRM over PCME: {better: msrm, other: pcme}
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar, get_args

from pydantic import BeforeValidator, Field, model_validator

from manymatch.config.strict import Strict, read_yaml, validate
from manymatch.results.base import Record, Result
from manymatch.results.retrieval import BothWays, MultiMatch
from manymatch.results.sets import ElementPairs, SetMetrics
from manymatch.util.errors import ConfigError, nearest


class ExperimentMetrics(Record):
    """The metrics that `evaluate` wrote. Older files lack some of the keys."""

    rsum: float
    multi: BothWays[MultiMatch] | None = None
    sets: SetMetrics | None = None


class Hits(Record):
    """Every query of a ranking as a digit: within how many of the cuts 1, 5 and 10 is the rank of
    the query's first positive?

    `i2t` has a digit for each image. `t2i` has a word for each image, in the same order, with a
    digit for each caption of the image. The rsum is 100 times the sum of both means.
    """

    i2t: Annotated[str, Field(pattern="^[0-3]+$")]
    t2i: Annotated[str, Field(pattern="^[0-3]+( [0-3]+)*$")]

    @model_validator(mode="after")
    def _check_images(self) -> Self:
        if len(self.i2t) != len(self.t2i.split()):
            raise ValueError("i2t and t2i differ in the number of images")
        return self

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of images and of captions."""
        return len(self.i2t), len(self.t2i.replace(" ", ""))


class ExperimentRun(Record):
    """One training and its test metrics. `seconds` is None if training was interrupted; `pairs`
    are those of set elements, if the method has sets. Older files have no `hits`."""

    seed: int
    metrics: ExperimentMetrics
    hits: Hits | None = None
    seconds: float | None = None
    pairs: ElementPairs | None = None


def value_text(value: Any) -> str:
    """A setting as labels and tables write the value."""
    return value if isinstance(value, str) else json.dumps(value)


class ExperimentPoint(Record):
    """One row: the settings that vary, and one run for each seed."""

    label: str
    settings: dict[str, Any]
    runs: Annotated[list[ExperimentRun], Field(min_length=1)]


class Experiment(Result):
    """`keys` are the varied settings of a grid; the list is empty if the points have names."""

    path: ClassVar[str] = "experiments/{dataset}/{name}.json"
    remedy: ClassVar[str] = "Run 'manymatch experiment' for {name} again."

    dataset: str
    name: str
    about: str
    preset: str | None
    keys: list[str]
    seeds: list[int]
    split: str
    images: int
    captions: int
    setting: Literal["small-scale", "reproduced"]
    points: Annotated[list[ExperimentPoint], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_points(self) -> Self:
        labels = [point.label for point in self.points]
        if len({*labels}) < len(labels):
            raise ValueError("two points have the same label")
        for point in self.points:
            if missing := {*self.keys} - {*point.settings}:
                raise ValueError(f"{point.label}: the setting '{min(missing)}' is missing")
            if len({run.seed for run in point.runs}) < len(point.runs):
                raise ValueError(f"{point.label}: two runs have the same seed")
            sizes = {run.hits.sizes for run in point.runs if run.hits}
            if sizes - {(self.images, self.captions)}:
                raise ValueError(f"{point.label}: the hits are not those of all queries")
        return self

    @property
    def compares_methods(self) -> bool:
        """Whether the points are whole methods. Such points are shown best first."""
        return self.keys == ["preset"]

    @classmethod
    def read_all(cls, reports: Path) -> list[Self]:
        """All experiments by data set and name; those of methods come first."""
        return sorted(
            super().read_all(reports),
            key=lambda one: (one.dataset, not one.compares_methods),
        )


Relevance = Literal["pair", "class"]
"""What counts as a positive: the sample's partner, or any sample of the same class."""

_Run = TypeVar("_Run")


class PointOverSeeds(Record, Generic[_Run]):
    """One row: one run for each seed."""

    label: str
    runs: Annotated[list[_Run], Field(min_length=1)]


class SyntheticRecall(Record):
    """R@1 in percent, and the median rank."""

    r1: float
    medr: float


class AssignmentFit(Record):
    """How well the last queue was assigned: the largest `error` of a class's share, in samples; in
    older files also the number of Newton `steps` that would solve the assignment."""

    error: float
    steps: int | None = None


class SyntheticRun(Record):
    """One training with one seed."""

    seed: int
    pair: SyntheticRecall
    class_: Annotated[SyntheticRecall, Field(alias="class")]
    assignment: AssignmentFit | None
    seconds: float
    processor_seconds: float

    def recall(self, kind: Relevance) -> SyntheticRecall:
        return self.pair if kind == "pair" else self.class_


class ExperimentOverSeeds(Result, Generic[_Run]):
    """All points of an experiment, with the same seeds."""

    remedy: ClassVar[str] = "Run 'manymatch experiment' for {name} again."

    name: str
    about: str
    baseline: str | None
    seeds: list[int]
    points: Annotated[list[PointOverSeeds[_Run]], Field(min_length=1)]


class SyntheticExperiment(ExperimentOverSeeds[SyntheticRun]):
    """`published` has the paper's R@1 by point and kind."""

    path: ClassVar[str] = "synthetic/{name}.json"

    published: dict[str, dict[str, float]]

    @classmethod
    def read_all(cls, reports: Path) -> list[Self]:
        """All experiments by name; those with a paper's numbers come first."""
        return sorted(super().read_all(reports), key=lambda experiment: not experiment.published)


class SketchRun(Record):
    """One training with one seed, and the metrics of the unseen classes in percent."""

    seed: int
    map: float
    map_at_200: float
    p_at_200: float
    seconds: float


class SketchExperiment(ExperimentOverSeeds[SketchRun]):
    """All points of an experiment on one data set of sketches."""

    path: ClassVar[str] = "sketches/{name}.json"

    dataset: str


Metric = Literal["rsum", "map_at_r", "others", "image_variance", "caption_variance"]
"""What is compared; more is better. The report has the label of each metric."""
METRICS: tuple[Metric, ...] = get_args(Metric)


def _known(value: Any) -> Any:
    if isinstance(value, str) and value not in METRICS:
        raise ValueError(f"unknown metric '{value}'{nearest(value, METRICS)}")
    return value


KnownMetric = Annotated[Metric, BeforeValidator(_known)]
Labels = Annotated[
    list[str],
    BeforeValidator(lambda label: [label] if isinstance(label, str) else label),
    Field(min_length=1),
]


class Claim(Strict):
    """The claim that a point exceeds another point in each of the `metrics`. If a side lists
    several points, the point with the best mean stands for the side."""

    better: Labels
    other: Labels
    metrics: Annotated[tuple[KnownMetric, ...], Field(min_length=1)] = ("rsum", "map_at_r")

    @model_validator(mode="after")
    def _check_sides(self) -> Self:
        if both := {*self.better} & {*self.other}:
            raise ValueError(f"'{min(both)}' is on both sides. Remove the label from one side")
        return self


Claims = dict[str, Claim]
"""Claims by the text that the report shows."""


def unknown_label(claims: Claims, labels: Iterable[str]) -> str | None:
    """What is wrong if a claim names a point that is not among `labels`; None: nothing."""
    known = [*labels]
    for text, claim in claims.items():
        for label in (*claim.better, *claim.other):
            if label not in known:
                return f"claims.{text}: no point is called '{label}'{nearest(label, known)}"
    return None


class _Stated(Strict, extra="ignore"):
    """The keys of an experiment's file that claims are about."""

    claims: Claims = Field(default_factory=dict)
    points: dict[str, Any] = Field(default_factory=dict)
    over: dict[str, Any] = Field(default_factory=dict)


def read_claims(plans: Path, labels: Mapping[str, Iterable[str]]) -> dict[str, Claims]:
    """The claims in the files of experiments in the folder `plans`, by experiment. `labels` are
    those of each experiment's points in the files of results. Points that the file of the
    experiment adds may be claimed before they have results.

    Raises:
        ConfigError: a file or a claim is wrong; one line with the file, the claim and the fault.
    """
    claims = {}
    for name, known in labels.items():
        path = plans / f"{name}.yaml"
        if path.is_file():
            stated = validate(_Stated, read_yaml(path), str(path))
            presets = stated.over.get("preset", [])
            known = {*known, *stated.points, *(presets if isinstance(presets, list) else [])}
            if fault := unknown_label(stated.claims, sorted(known)):
                raise ConfigError(f"{path}: {fault}")
            claims[name] = stated.claims
    return claims
