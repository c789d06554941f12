"""The flows. Each flow runs some of DVC's stages with all stages that they need, in DVC's order.

`deployments.py` names the deployments. Parameters are checked before anything runs; an error ends
the run as Failed with one line. A run with overrides works in a worktree (`experiment.py`).
"""

import contextlib
import hashlib
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from prefect import flow, get_client, runtime
from prefect.client.schemas.objects import Flow, FlowRun, State
from prefect.context import FlowRunContext
from prefect.logging.loggers import flow_run_logger
from prefect.states import Completed, Failed
from pydantic import Field

from manymatch.cli.deployment_names import PROGRESS, earlier_runs, run_title
from manymatch.config.names import preset_path
from manymatch.config.params import Name, read_params
from manymatch.util.errors import ConfigError, ManyMatchError, nearest
from pipelines import artifacts, experiment, gpus, settings, sharing
from pipelines.artifacts import LAYOUT, METRICS
from pipelines.crashed_runs import ended_with_worker
from pipelines.experiment import Experiment
from pipelines.graph import Graph, Stage, read_graph
from pipelines.settings import Change, Tell
from pipelines.stage import CACHED, progress, task_of

ALL = "all"
"""Stands for all data sets that `params.yaml` names."""
Overrides = list[str] | str
"""`["training.epochs=2", "seed=1"]`, or one text with spaces between the overrides."""
Parts = Annotated[int, Field(ge=1, le=1000)]
Choice = Callable[[Graph], list[Stage]]
"""Selects stages of DVC's graph."""
BeforeStage = Callable[[Stage, Mapping[str, str]], None]
"""Called with a stage and its environment before the stage runs."""
_RANDOM_NAME = re.compile("[a-z]+-[a-z]+")
"""The form of the names that Prefect gives runs without a name."""


def _say_what_next(flow: Flow, flow_run: FlowRun, state: State) -> None:
    """Log what to do next; Prefect calls this function after a run crashed or was cancelled."""
    flow_run_logger(flow_run).getChild(PROGRESS).warning(
        "%s. Finished stages are kept, and an unfinished stage continues from its own checkpoints. "
        "Start the same run again.",
        state.name,
    )


def _run_name() -> str:
    """The name that a person gave the run; else the title of the run with a number."""
    if not _RANDOM_NAME.fullmatch(runtime.flow_run.name):
        return runtime.flow_run.name
    name = runtime.deployment.name or runtime.flow_run.flow_name
    title = run_title(name, runtime.flow_run.parameters)
    with get_client(sync_client=True) as client:
        return f"{title} {client.count_flow_runs(**earlier_runs(title)) + 1}"


_flow = partial(
    flow, flow_run_name=_run_name, on_crashed=[_say_what_next], on_cancellation=[_say_what_next]
)


@_flow()
def prepare(
    dataset: Name = ALL, overrides: Overrides = "", parts: Parts = 1, cluster: str = ""
) -> State:
    """Make everything that training reads, for one data set or for all in `params.yaml`.

    Heavy stages run in `parts` side by side: on this machine, or on the Dask cluster whose
    scheduler has the address `cluster`, such as tcp://10.0.0.5:8786.
    """

    return _run(
        lambda graph: graph.making(LAYOUT.shards(_folder(dataset, graph.root), "")),
        overrides,
        parts=parts,
        cluster=cluster,
    )


@_flow()
def index(
    name: Name = ALL, overrides: Overrides = "", parts: Parts = 1, cluster: str = ""
) -> State:
    """Make one index of `params.yaml`, or all, and what indexes need; `parts` as for `prepare`."""

    def stages(graph: Graph) -> list[Stage]:
        known = read_params(graph.root / LAYOUT.params).indexes
        if not known or name not in (*known, ALL):
            raise ConfigError(f"params.yaml: indexes: no '{name}'{nearest(name, known)}")
        return graph.making(LAYOUT.indexes / ("" if name == ALL else name))

    return _run(stages, overrides, parts=parts, cluster=cluster)


@_flow()
def shards(dataset: Name, features: Name, to: str, parts: Parts = 2, cluster: str = "") -> State:
    """Make the shards of a data set part by part at the URL `to`, from its captions and scene
    graphs. A machine keeps the features and shards of one part; `cluster` as for `prepare`."""
    from pipelines.parts import dividing

    logger = progress()
    command = f"manymatch shards {dataset} {features} --to {shlex.quote(to)}"
    try:
        with ended_with_worker(logger.error), gpus.claimed(_queue(), logger.info) as visible:
            dividing(parts, cluster, lambda _: True)(Stage("shards", command, (), ()), visible)
    except ManyMatchError as error:
        logger.error("%s", error)
        return Failed(message=str(error))
    return Completed(message=f"{parts} parts are at {to}")


@_flow()
def train(preset: Name, dataset: Name = "scenes", overrides: Overrides = "") -> State:
    """Train and evaluate one preset, `presets/DATASET/PRESET.yaml`.

    A preset or data set that `params.yaml` does not name yet is added to that file. Overrides
    without a file belong to the preset.
    """
    outputs = LAYOUT.model(dataset, preset), LAYOUT.result(dataset, preset).metrics
    return _run(lambda graph: graph.making(*outputs), overrides, (dataset, preset))


@_flow()
def evaluate(dataset: Name = ALL, overrides: Overrides = "") -> State:
    """Evaluate every model of one data set, or of all in `params.yaml`."""

    return _run(lambda graph: graph.making(METRICS / _folder(dataset, graph.root)), overrides)


@_flow()
def report() -> State:
    """Write the report of the present results; no stage that makes results is run."""
    outputs = LAYOUT.code, LAYOUT.reports / "index.html"
    return _run(lambda graph: graph.writing(*outputs))


@_flow()
def reproduce(overrides: Overrides = "") -> State:
    """Run all stages of `params.yaml`, as `dvc repro` does."""
    return _run(lambda graph: list(graph.stages), overrides)


def _folder(dataset: str, root: Path) -> str:
    """The name of the data set's folder in a folder of outputs; "" stands for all data sets."""
    known = read_params(root / LAYOUT.params).datasets
    if dataset not in (*known, ALL):
        raise ConfigError(f"params.yaml: datasets: no '{dataset}'{nearest(dataset, known)}")
    return "" if dataset == ALL else dataset


def _run(
    choose: Choice,
    overrides: Overrides = "",
    model: tuple[str, str] | None = None,
    parts: int = 1,
    cluster: str = "",
) -> State:
    """Run the stages that `choose` selects, each as a task, until a stage fails.

    Args:
        choose: selects stages of DVC's graph.
        overrides: changes of settings.
        model: data set and preset that `params.yaml` must name.
        parts, cluster: as for `prepare`.
    """
    logger, select = progress(), partial(_selected, choose)
    try:
        shared = sharing.shared(logger.warning)
        before = _divided(parts, cluster, overrides) if parts > 1 or cluster else None
        with (
            ended_with_worker(logger.error),
            _settled(overrides, model, select, logger.info) as made,
            gpus.claimed(_queue(), logger.info) as visible,
        ):
            stages = select(Path())
            environment = visible | (made.environment if made else {})
            states = _run_stages(stages, environment, before, shared, logger.info)
            if states[-1].is_completed():
                _publish(stages, states, made, logger.info)
    except ManyMatchError as error:
        logger.error("%s", error)
        return Failed(message=str(error))
    if not states[-1].is_completed():
        return Failed(message=states[-1].message)
    cached = sum(state.name == CACHED for state in states)
    return Completed(message=f"{len(states) - cached} stages ran, {cached} had not changed")


def _queue() -> str | None:
    """The queue from which a worker took the present run."""
    context = FlowRunContext.get()
    return context.flow_run.work_queue_name if context and context.flow_run else None


def _divided(parts: int, cluster: str, overrides: Overrides) -> BeforeStage:
    if cluster and overrides:
        raise ConfigError(
            "overrides: the workers of a cluster use the settings of their own checkouts. Write "
            "the settings into the files of every checkout, or leave out 'cluster'."
        )
    from pipelines.parts import dividing  # importing Dask is slow

    return dividing(parts, cluster)


@contextlib.contextmanager
def _settled(
    overrides: Overrides,
    model: tuple[str, str] | None,
    select: Callable[[Path], list[Stage]],
    tell: Tell,
) -> Iterator[Experiment | None]:
    """Run the block with the settings of the run: with overrides in a new worktree, which is the
    current folder during the block, else in the workspace."""

    def names() -> list[Change]:
        return settings.named(*model) if model else []

    preset = preset_path(LAYOUT.presets, *model) if model else None
    changes = settings.overridden(overrides, preset)
    if not changes:
        settings.add_names(names, tell, select)
        settings.tell_differences(tell)
        yield None
        return
    changes = names() + changes
    # The same for runs of the same flow with the same parameters.
    facts = repr((runtime.flow_run.flow_name, sorted(runtime.flow_run.parameters.items())))
    with experiment.opened(hashlib.sha256(facts.encode()).hexdigest()[:12], tell) as made:
        settings.write(changes, made.folder, tell)
        settings.check(made.folder, made.environment)
        results = read_graph(Path()).writing(LAYOUT.reports)
        made.checkout(stage.name for stage in [*select(Path()), *results])
        yield made


def _selected(choose: Choice, root: Path) -> list[Stage]:
    """The stages to run in the checkout `root`; a `ConfigError` if there is none."""
    if stages := choose(read_graph(root)):
        return stages
    raise ConfigError(
        "params.yaml: no stage belongs to this run. Add its data set and preset to the lists "
        "'datasets' and 'presets'."
    )


def _run_stages(
    stages: list[Stage],
    environment: dict[str, str],
    before: BeforeStage | None,
    shared: bool,
    tell: Tell,
) -> list[State]:
    states: dict[str, State] = {}
    for number, stage in enumerate(stages, start=1):
        label, began = f"{number}/{len(stages)} {stage.name}", time.monotonic()
        tell(label)
        if shared:
            sharing.pull(stage.name)
        if before:
            before(stage, environment)
        needed = [states[name] for name in stage.needs if name in states]
        run = task_of(stage.kind)
        state = run(stage.name, environment, shared, wait_for=needed, return_state=True)
        states[stage.name] = state
        if not state.is_completed():
            break
        result = state.message if state.name == CACHED else "done"
        tell(f"{label}: {result}, {time.monotonic() - began:.0f} s")
    return list(states.values())


def _publish(stages: list[Stage], states: list[State], made: Experiment | None, tell: Tell) -> None:
    """Save the experiment, make the artifacts, tell the metrics."""
    workspace, report = Path(), Path("service", "workspace")
    if made:
        name = made.save(runtime.flow_run.name)
        tell(f"saved as experiment {name}: 'dvc exp diff HEAD {name}', 'dvc exp apply {name}'")
        workspace, report = made.workspace, Path("service", "experiments", name)
    if all(state.name == CACHED for state in states):
        tell("no stage had to run: nothing has changed since these results were made")
    artifacts.publish(stages, workspace, report, tell)
