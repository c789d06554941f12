"""How an experiment runs, whatever its kind: read from top to bottom.

points x seeds -> the runs that are not finished -> worker processes -> the file of results

`models/.experiments/KIND/KEY/` holds `result.json` of a finished run and, while the run is not
finished, whatever its kind of experiment writes there (checkpoints, a model). `log.txt` holds the
messages of the run. KEY is the hash of everything that the run depends on except the code, so
that two experiments share a run that they have in common.
"""

import contextlib
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from manymatch import __version__
from manymatch.config.layout import Layout
from manymatch.experiments.grid import DEFAULTS, Options, Plan, Point, points
from manymatch.experiments.workers import finish_all, gpus_of
from manymatch.results.base import Result
from manymatch.util import files
from manymatch.util.errors import DataError, ManyMatchError
from manymatch.util.json_file import read_object
from manymatch.util.locks import lock_path, locked
from manymatch.util.progress import say

Numbers = dict[str, Any]
"""What a run measured, as JSON values."""


def perform(experiment: "Experiment[Any, Any]") -> Path:
    """Do the runs of `experiment` that are not finished, and write the file of results.

    The numbers of finished runs are kept, so that an experiment that was killed or extended does
    the missing runs only. An interrupted training continues after its last epoch.

    Raises:
        ConfigError, DataError: the settings of a point or the data do not fit. Nothing has run.
        ManyMatchError: a run failed. All other runs have been finished.
    """
    experiment.check()
    experiment.prepare()
    rows = [
        (point, [run_of(experiment, point, seed) for seed in experiment.plan.seeds])
        for point in points(experiment.plan)
    ]
    all_runs = [run for _, runs in rows for run in runs]
    _say_same_points(experiment.name, rows)
    if experiment.options.extend:
        recorded = experiment.recorded(all_runs)
        # Numbers of the present code come before numbers of other code.
        for run, code, made in sorted(recorded, key=lambda each: each[1] != each[0].code):
            if run.numbers(experiment.options.accept_stale) is None:
                replace(run, code=code).finish(made)
    numbers = _numbers_of_all(experiment, all_runs)
    finished = [Row(point, [(run, numbers[run.folder]) for run in runs]) for point, runs in rows]
    result = experiment.result(finished)
    path = experiment.layout.reports / result.path.format_map(vars(result))
    with locked(lock_path(path), path):
        experiment.publish(finished)
        result.write(path)
    return path


def _say_same_points(name: str, rows: "Sequence[tuple[Point, Sequence[Run]]]") -> None:
    """Say which points have the settings of an earlier point, and so the same numbers."""
    labels: dict[Path, str] = {}
    for point, (run, *_) in rows:
        if (earlier := labels.setdefault(run.folder, point.label)) != point.label:
            say(
                f"{name}: '{point.label}' has the settings of '{earlier}', so its numbers are equal"
            )


def run_of(experiment: "Experiment[Any, Any]", point: Point, seed: int) -> "Run":
    """The run of one point with one seed."""
    settings = experiment.settings(point, seed)
    key = key_of(settings=experiment.inputs(settings), seed=seed)
    return Run(
        label=f"{point.label}, seed {seed}",
        settings=settings,
        seed=seed,
        code=experiment.code(settings),
        folder=experiment.layout.experiment_runs(experiment.kind) / key,
    )


def _numbers_of_all(
    experiment: "Experiment[Any, Any]", runs: "Sequence[Run]"
) -> dict[Path, Numbers]:
    """The numbers of all `runs` by folder. Equal runs have the same folder and are done once."""
    options = experiment.options
    different = {run.folder: run for run in runs}
    finished = {
        folder: numbers
        for folder, run in different.items()
        if (numbers := run.numbers(options.accept_stale, options.keep)) is not None
    }
    missing = [run for folder, run in different.items() if folder not in finished]
    say(f"{experiment.name}: {len(different)} runs, {len(finished)} of them finished before")
    done = finish_all(
        experiment.finish,
        missing,
        experiment.headline,
        what=experiment.name,
        logs=experiment.layout.experiment_runs(experiment.kind),
        jobs=options.jobs,
        gpus=gpus_of(options.device) if "--device" in experiment.options_of_kind else [],
        one_a_core=experiment.one_run_a_core,
        expected=[experiment.expected_seconds(run.settings) for run in missing],
        log=lambda run: run.folder / "log.txt",
    )
    return finished | {run.folder: numbers for run, numbers in done}


PlanOfKind = TypeVar("PlanOfKind", bound=Plan)
RunSettings = TypeVar("RunSettings")


class Experiment(ABC, Generic[PlanOfKind, RunSettings]):
    """What one kind of experiment adds to the engine: from the settings of a point to one run.

    `engine.perform` calls the methods in the order in which they stand here. Worker processes get
    a copy of the object, so its attributes must be picklable and small.
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

    def check(self) -> None:
        """Check the settings of every point. A `ConfigError` names the experiment and the point."""
        for point in points(self.plan):
            try:
                self.settings(point, self.plan.seeds[0])
            except ManyMatchError as fault:
                raise type(fault)(f"{self.name}, point '{point.label}': {fault}") from None

    def prepare(self) -> None:
        """Check the data that all runs read, before the first run."""

    @abstractmethod
    def settings(self, point: Point, seed: int) -> RunSettings:
        """The complete settings of one run; a `ConfigError` if a key or a value does not fit."""

    @abstractmethod
    def inputs(self, settings: RunSettings) -> dict[str, Any]:
        """Everything but seed and code that the numbers of a run depend on, as JSON values; a
        `DataError` if an input is missing."""

    @abstractmethod
    def code(self, settings: RunSettings) -> str:
        """The hash of the code that a run executes."""

    def recorded(self, runs: "Sequence[Run]") -> "list[tuple[Run, str, Numbers]]":
        """Those of `runs` that files of results hold, each with the hash of the code that made the
        numbers and the numbers. A kind whose files leave out numbers of a run returns none."""
        return []

    def finish(self, run: "Run") -> Numbers:
        """The numbers of `run`, which another process may have finished meanwhile."""
        return run.once(
            lambda: self.run(run.settings, run.seed, run.folder),
            [*self.files_of_a_run, *(["model"] if self.options.keep else [])],
            self.options.accept_stale,
            needs_model=self.options.keep,
        )

    @abstractmethod
    def run(self, settings: RunSettings, seed: int, folder: Path) -> Numbers:
        """Do one run in a worker process and return its numbers, as JSON values. `folder` belongs
        to this run. It may hold what an interrupted attempt with the same code left."""

    def expected_seconds(self, settings: RunSettings) -> float | None:
        """How long earlier runs let expect that a run takes; None: there are none."""
        return None

    @abstractmethod
    def headline(self, numbers: Numbers) -> str:
        """The most important number of a run, for the line of progress."""

    @abstractmethod
    def result(self, rows: "Sequence[Row]") -> Result:
        """The content of the file of results."""

    def publish(self, rows: "Sequence[Row]") -> None:
        """Copy files of the runs into `reports/`, if the kind has such files."""


class Row(NamedTuple):
    """A point with the numbers of its runs, one run for each seed."""

    point: Point
    runs: "Sequence[tuple[Run, Numbers]]"

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


@dataclass(frozen=True)
class Run:
    """One run: settings, seed, the hash of the code, and the folder of the run."""

    label: str
    settings: Any
    seed: int
    code: str
    folder: Path

    @property
    def model(self) -> Path:
        """The folder of the trained model, if the run trains one and keeps it."""
        return self.folder / "model"

    def numbers(self, accept_stale: bool = False, needs_model: bool = False) -> Numbers | None:
        """The numbers of the finished run; None if the run is not finished, if other code finished
        the run and `accept_stale` is false, or if `needs_model` and the run has no model."""
        try:
            result = read_object(self.folder / "result.json")
            numbers: Numbers = result["numbers"]
            current = accept_stale or result["code"] == self.code
        except (DataError, KeyError):
            return None
        complete = not needs_model or self.model.exists()
        return numbers if current and complete else None

    def once(
        self,
        work: Callable[[], Numbers],
        kept: Sequence[str] = (),
        accept_stale: bool = False,
        needs_model: bool = False,
    ) -> Numbers:
        """The numbers of the finished run, or else those of `work`, whose messages go to the log.

        Another process that does the same run is waited for. What other code left in the folder
        is removed before the work. The files and folders called `kept` stay after the work.
        `needs_model`: see `numbers`.
        """
        with locked(self.folder / "lock", self.folder):
            numbers = self.numbers(accept_stale, needs_model)
            if numbers is None:
                mark = self.folder / "code"
                if not mark.is_file() or mark.read_text(encoding="utf-8") != self.code:
                    self.tidy()
                    files.write_text(mark, self.code)
                path = self.folder / "log.txt"
                with path.open("w", encoding="utf-8") as log, contextlib.redirect_stderr(log):
                    numbers = work()
                self.finish(numbers)
            self.tidy("result.json", "log.txt", *kept)
        return numbers

    def finish(self, numbers: Numbers) -> None:
        files.write_json(self.folder / "result.json", {"code": self.code, "numbers": numbers})

    def tidy(self, *names: str) -> None:
        """Remove everything but the lock and the files or folders called `names`."""
        for path in self.folder.iterdir():
            if path.name not in {"lock", *names}:
                files.remove(path)


def key_of(**values: Any) -> str:
    """Equal values have equal keys; the values must be JSON values."""
    text = json.dumps({**values, "version": __version__}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
