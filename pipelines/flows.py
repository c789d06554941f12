"""The flows. Each runs some of DVC's stages with all that they need, in the order of DVC's graph.

`prefect.yaml` names their deployments. Parameters are checked before anything runs; a fault ends
the run as Failed with one line. How overrides work: `pipelines/settings.py`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import Flow, FlowRun, State
from prefect.logging.loggers import flow_run_logger
from prefect.states import Completed, Failed
from pydantic import Field

from manymatch.config.layout import Layout
from manymatch.config.params import Name, read_params
from manymatch.config.preset import preset_path
from manymatch.system.errors import ConfigError, ManyMatchError, nearest
from pipelines import artifacts, gpus, settings, sharing
from pipelines.artifacts import METRICS
from pipelines.graph import Graph, Stage, read_graph
from pipelines.orphan import ended_with_worker
from pipelines.plain import speak_plainly
from pipelines.settings import Change
from pipelines.stage import CACHED, task_of

LAYOUT = Layout()
ALL = "all"
"""In place of a data set: all that `params.yaml` names."""
Overrides = list[str] | str
"""`["training.epochs=2", "seed=1"]`, or the same in one text with spaces between."""
Parts = Annotated[int, Field(ge=1, le=1000)]
BeforeStage = Callable[[Stage, Mapping[str, str]], None]
"""What to do before a stage runs, and in which environment."""

speak_plainly()


def _say_what_next(flow: Flow, flow_run: FlowRun, state: State) -> None:
    """Prefect calls this when a run has crashed or was cancelled."""
    flow_run_logger(flow_run).warning(
        "%s. Finished stages are kept, and an unfinished one goes on from its own checkpoints: "
        "start the same run again",
        state.name,
    )


_flow = partial(flow, on_crashed=[_say_what_next], on_cancellation=[_say_what_next])


@_flow(flow_run_name="prepare {dataset}")
def prepare(
    dataset: Name = ALL, overrides: Overrides = "", parts: Parts = 1, cluster: str = ""
) -> State:
    """Everything that training reads: shards of one data set, or of all in `params.yaml`.

    The heavy stages run in so many `parts` side by side: on this machine, or on the `cluster` that
    has its Dask scheduler there, such as tcp://10.0.0.5:8786.
    """

    def chosen(graph: Graph) -> list[Stage]:
        shards = LAYOUT.shards(_folder(dataset, graph.root), "")
        return graph.with_needs(graph.writing(shards))

    return _run(
        chosen,
        _changes(overrides),
        partial(_divided, parts, cluster) if parts > 1 or cluster else None,
    )


@_flow(flow_run_name="train {dataset}-{method}")
def train(method: Name, dataset: Name = "scenes", overrides: Overrides = "") -> State:
    """Train and evaluate one preset, `presets/DATASET/METHOD.yaml`.

    If `params.yaml` does not name the method or data set yet, they are added there. Overrides
    without a file belong to the preset.
    """

    def changes() -> list[Change]:
        preset = preset_path(LAYOUT.presets, dataset, method)
        added = settings.named(dataset, method)
        return added + settings.overridden(_texts(overrides), preset)

    places = LAYOUT.model(dataset, method), LAYOUT.metrics(dataset, method)
    return _run(lambda graph: graph.with_needs(graph.writing(*places)), changes)


@_flow(flow_run_name="evaluate {dataset}")
def evaluate(dataset: Name = ALL, overrides: Overrides = "") -> State:
    """Evaluate every model of one data set, or of all in `params.yaml`."""
    return _run(
        lambda graph: graph.with_needs(graph.writing(METRICS / _folder(dataset, graph.root))),
        _changes(overrides),
    )


@_flow()
def report() -> State:
    """Write the report of the results that are there; nothing else is run."""
    return _run(lambda graph: graph.writing(LAYOUT.reports / "index.html"), _changes(""))


@_flow()
def reproduce(overrides: Overrides = "") -> State:
    """All stages of `params.yaml`, as `dvc repro` does."""
    return _run(lambda graph: list(graph.stages), _changes(overrides))


def _divided(parts: int, cluster: str) -> BeforeStage:
    from pipelines.parts import dividing  # Dask takes its time to be imported

    return dividing(parts, cluster)


def _folder(dataset: str, root: Path) -> str:
    """The data set's folder in each kind of outputs; with `ALL`, that kind itself."""
    known = read_params(root / LAYOUT.params).datasets
    if dataset not in (*known, ALL):
        raise ConfigError(f"params.yaml: no data set '{dataset}'{nearest(dataset, known)}")
    return "" if dataset == ALL else dataset


def _texts(overrides: Overrides) -> list[str]:
    if not isinstance(overrides, str):
        return overrides
    try:
        return shlex.split(overrides)
    except ValueError as error:
        raise ConfigError(f"overrides: {error} in: {overrides}") from None


def _changes(overrides: Overrides) -> Callable[[], list[Change]]:
    return lambda: settings.overridden(_texts(overrides))


def _run(
    choose: Callable[[Graph], list[Stage]],
    changes: Callable[[], list[Change]],
    prepared: Callable[[], BeforeStage] | None = None,
) -> State:
    """Run the chosen stages one after another, each as a task, until one fails."""
    logger = get_run_logger()
    chosen = partial(_chosen, choose)
    try:
        shared = sharing.shared(logger.warning)
        before = prepared() if prepared else None
        with (
            ended_with_worker(logger.error),
            settings.settled(changes, logger.info, chosen),
            gpus.claimed(logger.info) as environment,
        ):
            stages = chosen(Path())
            logger.info("stages, in DVC's order: %s", ", ".join(stage.name for stage in stages))
            states = _run_stages(stages, environment, before, shared)
        if states[-1].is_completed():
            artifacts.publish(stages)
    except ManyMatchError as error:
        logger.error("%s", error)
        return Failed(message=str(error))
    return _summary(stages, states)


def _chosen(choose: Callable[[Graph], list[Stage]], root: Path) -> list[Stage]:
    """The stages to run in the checkout `root`; a `ConfigError` if there is none."""
    if stages := choose(read_graph(root)):
        return stages
    raise ConfigError("params.yaml names nothing that this run could do")


def _run_stages(
    stages: list[Stage],
    environment: dict[str, str],
    before: BeforeStage | None,
    shared: bool,
) -> list[State]:
    states: dict[str, State] = {}
    for stage in stages:
        if shared:
            sharing.pull_stage(stage.name)
        if before:
            before(stage, environment)
        needed = [states[name] for name in stage.needs if name in states]
        run = task_of(stage.kind)
        state = run(stage.name, environment, shared, wait_for=needed, return_state=True)
        states[stage.name] = state
        if not state.is_completed():
            break
    return list(states.values())


def _summary(stages: list[Stage], states: list[State]) -> State:
    if not states[-1].is_completed():
        return Failed(message=states[-1].message)
    cached = sum(state.name == CACHED for state in states)
    return Completed(message=f"{len(states) - cached} stages ran, {cached} had not changed")
