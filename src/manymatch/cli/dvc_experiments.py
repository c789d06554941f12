"""DVC's experiments in a table that fits a terminal. `dvc exp show` needs more than 500 columns,
because DVC prints the hash of each dependency and the path of each metric."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from manymatch.reporting.table import Cell, Column, Table
from manymatch.util.errors import ConfigError


def experiments_table() -> Table:
    """The workspace, HEAD, and HEAD's experiments: the settings that differ from HEAD's, and the
    rsum of each model.

    Raises:
        ConfigError: DVC is not installed or cannot list experiments, or HEAD has no experiment.
    """
    try:
        from dvc.exceptions import DvcException
        from dvc.repo import Repo
    except ImportError:
        raise ConfigError("DVC is not installed. Run: pip install '.[pipeline]'") from None
    try:
        with Repo() as repo:
            workspace, *baselines = repo.experiments.show()
    except DvcException as error:
        raise ConfigError(f"DVC cannot list experiments: {error}") from None
    if not baselines or not baselines[0].experiments:
        raise ConfigError(
            "this commit has no experiments. 'dvc exp run' makes one, and so does a run of the "
            "service with overrides"
        )
    head = baselines[0]
    states = [workspace, head, *(state for part in head.experiments for state in part)]
    settings = [dict(_values(state.data.params) if state.data else ()) for state in states]
    scores = [dict(_values(state.data.metrics) if state.data else ()) for state in states]
    keys = dict.fromkeys(key for score in scores for key in score if key.endswith(" rsum"))
    datasets = {key.split("/")[0] for key in keys}
    dataset = f"{datasets.pop()}/" if len(datasets) == 1 else ""
    return Table(
        "The experiments of this commit, with the rsum of each model",
        [
            Column("experiment", numeric=False),
            *(Column(key.removesuffix(" rsum").removeprefix(dataset)) for key in keys),
            Column("changed settings", numeric=False),
        ],
        [
            [
                Cell(state.name or state.rev),
                *(Cell.number(score.get(key)) for key in keys),
                Cell("; ".join(_changes(own, settings[1])) if own else "not finished"),
            ]
            for state, own, score in zip(states, settings, scores, strict=True)
        ],
    )


def _values(read: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Each value of DVC's files as "DATASET/PRESET KEY", and "KEY" in params.yaml."""
    for path, file in read.items():
        name = "/".join(Path(path).with_suffix("").parts[-2:])
        place = "" if path == "params.yaml" else f"{name} "
        for key, value in _flat(file.get("data") or {}):
            yield f"{place}{key}", value


def _flat(values: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{start}{key}.")
        else:
            yield f"{start}{key}", value


def _changes(own: Mapping[str, Any], usual: Mapping[str, Any]) -> Iterator[str]:
    for key in dict.fromkeys([*own, *usual]):
        if own.get(key) != usual.get(key):
            yield f"{key} {own[key]}" if key in own else f"without {key}"
