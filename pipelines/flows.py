"""The flows. Each flow runs some of DVC's stages with all stages that they need, in DVC's order.

`prefect.yaml` names the deployments of the flows. Parameters are checked before anything runs; an
error ends the run as Failed with one line. `pipelines/settings.py` explains overrides.
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
"""Stands for all data sets that `params.yaml` names."""
Overrides = list[str] | str
"""`["training.epochs=2", "seed=1"]`, or one text with spaces between the overrides."""
Parts = Annotated[int, Field(ge=1, le=1000)]
BeforeStage = Callable[[Stage, Mapping[str, str]], None]
"""Called with a stage and its environment before the stage runs."""

speak_plainly()


def _say_what_next(flow: Flow, flow_run: FlowRun, state: State) -> None:
    """Log what to do next; Prefect calls this function after a run crashed or was cancelled."""
    flow_run_logger(flow_run).warning(
        "%s. Finished stages are kept, and an unfinished stage continues from its own checkpoints. "
        "Start the same run again.",
        state.name,
    )


_flow = partial(flow, on_crashed=[_say_what_next], on_cancellation=[_say_what_next])


@_flow(flow_run_name="prepare {dataset}")
def prepare(
    dataset: Name = ALL, overrides: Overrides = "", parts: Parts = 1, cluster: str = ""
) -> State:
    """Make everything that training reads, for one data set or for all in `params.yaml`.

    Heavy stages run in `parts` side by side: on this machine, or on the Dask cluster whose
    scheduler has the address `cluster`, such as tcp://10.0.0.5:8786.
    """

    def stages(graph: Graph) -> list[Stage]:
        shards = LAYOUT.shards(_folder(dataset, graph.root), "")
        return graph.with_needs(graph.writing(shards))

    return _run(
        stages,
        _changes(overrides),
        partial(_divided, parts, cluster) if parts > 1 or cluster else None,
    )


@_flow(flow_run_name="train {dataset}-{preset}")
def train(preset: Name, dataset: Name = "scenes", overrides: Overrides = "") -> State:
    """Train and evaluate one preset, `presets/DATASET/PRESET.yaml`.

    A preset or data set that `params.yaml` does not name yet is added to that file. Overrides
    without a file belong to the preset.
    """

    def changes() -> list[Change]:
        path = preset_path(LAYOUT.presets, dataset, preset)
        added = settings.named(dataset, preset)
        return added + settings.overridden(_texts(overrides), path)

    outputs = LAYOUT.model(dataset, preset), LAYOUT.result(dataset, preset).metrics
    return _run(lambda graph: graph.with_needs(graph.writing(*outputs)), changes)


@_flow(flow_run_name="evaluate {dataset}")
def evaluate(dataset: Name = ALL, overrides: Overrides = "") -> State:
    """Evaluate every model of one data set, or of all in `params.yaml`."""
    return _run(
        lambda graph: graph.with_needs(graph.writing(METRICS / _folder(dataset, graph.root))),
        _changes(overrides),
    )


@_flow()
def report() -> State:
    """Write the report of the present results; no stage that makes results is run."""
    outputs = LAYOUT.code, LAYOUT.reports / "index.html"
    return _run(lambda graph: graph.writing(*outputs), _changes(""))


@_flow()
def reproduce(overrides: Overrides = "") -> State:
    """Run all stages of `params.yaml`, as `dvc repro` does."""
    return _run(lambda graph: list(graph.stages), _changes(overrides))


def _divided(parts: int, cluster: str) -> BeforeStage:
    from pipelines.parts import dividing  # importing Dask is slow

    return dividing(parts, cluster)


def _folder(dataset: str, root: Path) -> str:
    """The name of the data set's folder in a folder of outputs; "" stands for all data sets."""
    known = read_params(root / LAYOUT.params).datasets
    if dataset not in (*known, ALL):
        raise ConfigError(f"params.yaml: datasets: no '{dataset}'{nearest(dataset, known)}")
    return "" if dataset == ALL else dataset


def _texts(overrides: Overrides) -> list[str]:
    if not isinstance(overrides, str):
        return overrides
    try:
        return shlex.split(overrides)
    except ValueError as error:
        raise ConfigError(
            f"overrides: {error} in {overrides!r}. Write KEY=VALUE with spaces between."
        ) from None


def _changes(overrides: Overrides) -> Callable[[], list[Change]]:
    return lambda: settings.overridden(_texts(overrides))


def _run(
    choose: Callable[[Graph], list[Stage]],
    changes: Callable[[], list[Change]],
    prepared: Callable[[], BeforeStage] | None = None,
) -> State:
    """Run the stages that `choose` selects, each as a task, until a stage fails."""
    logger = get_run_logger()
    select = partial(_selected, choose)
    try:
        shared = sharing.shared(logger.warning)
        before = prepared() if prepared else None
        with (
            ended_with_worker(logger.error),
            settings.settled(changes, logger.info, select),
            gpus.claimed(logger.info) as environment,
        ):
            stages = select(Path())
            logger.info("stages, in DVC's order: %s", ", ".join(stage.name for stage in stages))
            states = _run_stages(stages, environment, before, shared)
        if states[-1].is_completed():
            artifacts.publish(stages)
    except ManyMatchError as error:
        logger.error("%s", error)
        return Failed(message=str(error))
    return _summary(stages, states)


def _selected(choose: Callable[[Graph], list[Stage]], root: Path) -> list[Stage]:
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
