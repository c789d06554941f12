"""DVC's experiments in a table that fits a terminal. `dvc exp show` needs more than 500 columns,
because DVC prints the hash of each dependency and the path of each metric."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from manymatch.reporting.sections.methods import flat_settings
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
    states = [workspace, baselines[0], *(one for part in baselines[0].experiments for one in part)]
    settings, rsums = list(map(_settings, states)), list(map(_rsums, states))
    models = dict.fromkeys(model for known in rsums for model in known)
    datasets = {model.split("/")[0] for model in models}
    dataset = f"{datasets.pop()}/" if len(datasets) == 1 else ""
    return Table(
        "The experiments of this commit, with the rsum of each model",
        [
            Column("experiment", numeric=False),
            *(Column(model.removeprefix(dataset)) for model in models),
            Column("changed settings", numeric=False),
        ],
        [
            [
                Cell(state.name or state.rev),
                *(Cell.number(known.get(model)) for model in models),
                Cell("; ".join(_changes(own, settings[1])) if own else "not finished"),
            ]
            for state, own, known in zip(states, settings, rsums, strict=True)
        ],
    )


def _settings(state: Any) -> dict[str, str]:
    """The settings of DVC's `ExpState`: "DATASET/PRESET KEY", and "KEY" in params.yaml."""
    settings: dict[str, str] = {}
    for path, file in (state.data.params if state.data else {}).items():
        place = "" if path == "params.yaml" else f"{_name(path)} "
        flat = flat_settings(_mapping(file))
        settings |= {f"{place}{key}": text for key, text in flat.items()}
    return settings


def _rsums(state: Any) -> dict[str, float | None]:
    """The rsum of each model of DVC's `ExpState` by DATASET/PRESET; None for a faulty file."""
    metrics = state.data.metrics if state.data else {}
    rsums = {_name(path): _mapping(file).get("rsum") for path, file in metrics.items()}
    return {model: rsum if isinstance(rsum, int | float) else None for model, rsum in rsums.items()}


def _mapping(file: Mapping[str, Any]) -> dict[str, Any]:
    """What DVC read of a file; nothing where the file holds anything but a mapping."""
    data = file.get("data")
    return data if isinstance(data, dict) else {}


def _name(path: str) -> str:
    return "/".join(Path(path).with_suffix("").parts[-2:])


def _changes(own: Mapping[str, str], usual: Mapping[str, str]) -> Iterator[str]:
    """The settings of `own` that differ from the `usual` ones. A preset that only one of the two
    has is one change."""
    files, usual_files = _presets(own), _presets(usual)
    yield from (f"with {file}" for file in files if file not in usual_files)
    yield from (f"without {file}" for file in usual_files if file not in files)
    for key in dict.fromkeys([*own, *usual]):
        file, space, _ = key.partition(" ")
        compared = not space or (file in files and file in usual_files)
        if compared and own.get(key) != usual.get(key):
            yield f"{key} {own[key]}" if key in own else f"without {key}"


def _presets(settings: Mapping[str, str]) -> list[str]:
    """The DATASET/PRESET of `_settings`."""
    return list(dict.fromkeys(key.partition(" ")[0] for key in settings if " " in key))
