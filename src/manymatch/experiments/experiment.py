"""What one kind of experiment adds to the engine: from the settings of a point to one run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from manymatch.config.layout import Layout
from manymatch.experiments.plan import Plan, Point, Settings, points
from manymatch.experiments.run_folder import Numbers, Run
from manymatch.results.base import Result
from manymatch.util.errors import ManyMatchError

PlanOfKind = TypeVar("PlanOfKind", bound=Plan)
RunSettings = TypeVar("RunSettings")


@dataclass(frozen=True)
class Options:
    """The options of the command `experiment`, for all kinds of experiments."""

    dataset: str | None = None
    """Instead of the data set of the file."""
    seeds: str | None = None
    """Instead of the seeds of the file, e.g. "0,1,2"."""
    settings: Settings = field(default_factory=dict)
    """Settings of every point, besides those of the file."""
    jobs: int | None = None
    """Runs at a time. None: one for each GPU or, without GPUs, for each core."""
    device: str = "auto"
    """auto, cpu, cuda, or one GPU such as cuda:1."""
    keep: bool = False
    """Whether the trained models stay in the folders of the runs."""
    accept_stale: bool = False
    """Whether results that other source code made count as finished."""
    extend: bool = False
    """Whether the runs in files of results count as finished."""


DEFAULTS = Options()


class Row(NamedTuple):
    """A point with the numbers of its runs, one run for each seed."""

    point: Point
    runs: Sequence[tuple[Run, Numbers]]

    @property
    def settings(self) -> Any:
        """The complete settings of the point, with the first seed."""
        return self.runs[0][0].settings

    def as_json(self, *private: str) -> dict[str, Any]:
        """Label, complete settings and the numbers of all runs except the `private` ones."""
        runs = [
            {"seed": run.seed, **{key: numbers[key] for key in numbers if key not in private}}
            for run, numbers in self.runs
        ]
        settings = self.settings.model_dump(mode="json")
        return {"label": self.point.label, "settings": settings, "runs": runs}


class Experiment(ABC, Generic[PlanOfKind, RunSettings]):
    """One experiment of one kind; `engine.perform` calls the methods in the order in which they
    stand here.

    Worker processes get a copy of the object, so its attributes must be picklable and small.
    """

    kind: ClassVar[str]
    plan_type: ClassVar[type[Plan]]
    options_of_kind: ClassVar[frozenset[str]] = frozenset()
    """Those of --dataset, --device and --keep that mean something for this kind."""
    one_run_a_core: ClassVar[bool] = True
    """Whether several runs share the cores. Otherwise one run uses all cores."""
    files_of_a_run: ClassVar[tuple[str, ...]] = ()
    """The names of the files of a finished run that are kept beside its numbers."""

    def __init__(
        self, name: str, plan: PlanOfKind, layout: Layout, options: Options = DEFAULTS
    ) -> None:
        self.name, self.plan, self.layout, self.options = name, plan, layout, options

    @abstractmethod
    def settings(self, point: Point, seed: int) -> RunSettings:
        """The complete settings of one run.

        Raises:
            ConfigError: a key is unknown or a value does not fit.
        """

    def check(self) -> None:
        """Check the settings of every point.

        Raises:
            ConfigError: see `settings`. The message names the experiment and the point.
        """
        for point in points(self.plan):
            try:
                self.settings(point, self.plan.seeds[0])
            except ManyMatchError as fault:
                raise type(fault)(f"{self.name}, point '{point.label}': {fault}") from None

    def prepare(self) -> None:
        """Check the data that all runs read, before the first run."""

    @abstractmethod
    def inputs(self, settings: RunSettings) -> dict[str, Any]:
        """Everything but seed and code that the numbers of a run depend on, as JSON values.

        Raises:
            DataError: an input is missing.
        """

    def recorded(self, runs: Sequence[Run]) -> list[tuple[Run, str, Numbers]]:
        """Those of `runs` that files of results hold, each with the hash of the code that made the
        numbers and the numbers. A kind whose files leave out numbers of a run returns none."""
        return []

    @abstractmethod
    def code(self, settings: RunSettings) -> str:
        """The hash of the code that a run executes."""

    @abstractmethod
    def run(self, settings: RunSettings, seed: int, folder: Path) -> Numbers:
        """Do one run in a worker process and return its numbers, as JSON values.

        Args:
            folder: belongs to this run alone. It may hold what an interrupted attempt of the same
                run with the same code left, e.g. checkpoints.
        """

    @abstractmethod
    def headline(self, numbers: Numbers) -> str:
        """The most important number of a run, for the line of progress."""

    @abstractmethod
    def result(self, rows: Sequence[Row]) -> Result:
        """The content of the file of results."""

    def publish(self, rows: Sequence[Row]) -> None:
        """Copy files of the runs into `reports/`, if the kind has such files."""
