"""The settings of a run: names that `params.yaml` lacks, and overrides.

DVC's stages read their settings from files: `presets/DATASET/PRESET.yaml` (the preset of a model)
and `params.yaml` (all other settings). Names are added to the `params.yaml` of the workspace.
Overrides are written only into the worktree of an experiment (`experiment.py`).
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from filelock import FileLock

from manymatch.config.edit import edited
from manymatch.config.layout import Layout
from manymatch.config.names import preset_path
from manymatch.config.params import Params, read_params
from manymatch.config.preset import Preset, read_preset
from manymatch.config.strict import yaml_value
from manymatch.methods import check_model
from manymatch.util import files
from manymatch.util.errors import ConfigError, nearest
from pipelines import process

LAYOUT = Layout()
_LOCK = Path(".dvc", "tmp", "params.lock")
Judge = Callable[[Path], object]
"""Called with a checkout; raises `ConfigError` if its settings do not suit the run."""


@dataclass(frozen=True)
class Change:
    """The new `value` of a dotted `key` in a settings file."""

    file: Path
    key: str
    value: Any


def overridden(overrides: Sequence[str], preset: Path | None = None) -> list[Change]:
    """The changes that texts `KEY=VALUE` or `FILE:KEY=VALUE` ask for.

    A key without a file belongs to `preset` if a preset has such a setting (`training.epochs`),
    else to `params.yaml` (`shards.images_per_shard`). An unknown key is a `ConfigError`.
    """
    return [_change(text, preset) for text in overrides]


def _change(text: str, preset: Path | None) -> Change:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ConfigError(f"override '{text}': expected KEY=VALUE, such as training.epochs=2")
    file, _, key = name.rpartition(":")
    path = _settings_file(file, text) if file else _file_of(key, preset, text)
    return Change(path, key, yaml_value(value, f"override '{text}'"))


def _settings_file(name: str, text: str) -> Path:
    known = [str(LAYOUT.params), *map(str, sorted(LAYOUT.presets.glob("*/*.yaml")))]
    if name not in known:
        raise ConfigError(f"override '{text}': no settings file '{name}'{nearest(name, known)}")
    return Path(name)


def _file_of(key: str, preset: Path | None, text: str) -> Path:
    first = key.partition(".")[0]
    if preset and first in Preset.model_fields:
        return preset
    if first in Params.model_fields:
        return LAYOUT.params
    known = {*Params.model_fields, *(Preset.model_fields if preset else ())}
    raise ConfigError(f"override '{text}': unknown setting '{first}'{nearest(first, known)}")


def named(dataset: str, preset: str) -> list[Change]:
    """The names that `params.yaml` lacks so far: with them `preset` has its stages on `dataset`."""
    params = read_params(LAYOUT.params)
    if f"{dataset}-{preset}" in params.warm_starts:
        return []
    features = read_preset(preset_path(LAYOUT.presets, dataset, preset)).features
    names = {"datasets": dataset, "presets": preset, "features": features}
    return [
        Change(LAYOUT.params, key, [*getattr(params, key), name])
        for key, name in names.items()
        if name not in getattr(params, key)
    ]


def write(changes: Iterable[Change], folder: Path, tell: Callable[[str], None]) -> None:
    """Write changes into the settings files of the checkout `folder`, and tell each change.

    Raises:
        ConfigError: a key or value is wrong.
    """
    ordered = sorted(changes, key=lambda change: change.file)
    for file, group in groupby(ordered, key=lambda change: change.file):
        values = {change.key: change.value for change in group}
        for key, value in values.items():
            tell(f"{file}: {key} is {value}")
        if file != LAYOUT.params:
            values["setting"] = read_preset(file, values, check_model).setting
        # Not through a link: a worktree must leave the workspace as it is.
        files.write_text(folder / file, edited(file, values))


def check(folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Run `manymatch check` in the checkout `folder`, which may lack the data of the workspace; its
    error is a `ConfigError`."""
    output = ["manymatch check ended without a message. Start the run again"]
    if process.run(["manymatch", "check", "--settings"], output.append, environment, folder):
        raise ConfigError(output[-1].removeprefix("error: "))


def add_names(
    wanted: Callable[[], list[Change]], tell: Callable[[str], None], judge: Judge
) -> None:
    """Write the changes of `wanted()` into the workspace's `params.yaml` and tell them.

    Raises:
        ConfigError: `manymatch check` or `judge` refuses them. Nothing is written.
    """
    _LOCK.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(_LOCK):
        if changes := wanted():
            with tempfile.TemporaryDirectory() as copy:
                _copy_settings(Path(copy))
                write(changes, Path(copy), tell)
                check(Path(copy))
                judge(Path(copy))
                files.write_through(LAYOUT.params, Path(copy, LAYOUT.params).read_text())


def tell_differences(tell: Callable[[str], None]) -> None:
    """Name the settings files that differ from the last commit, so that no result is a surprise."""
    command = ["git", "diff", "--name-only", "HEAD", "--", str(LAYOUT.params), str(LAYOUT.presets)]
    answer = subprocess.run(command, capture_output=True, text=True)
    for name in answer.stdout.split():
        tell(f"{name} differs from the last commit; this run uses it as it is")


def _copy_settings(folder: Path) -> None:
    files.write_text(folder / ".dvc" / "config", "[core]\nno_scm = true\n")
    for name in (LAYOUT.params, LAYOUT.presets, Path("experiments"), Path("dvc.yaml")):
        if name.is_dir():
            shutil.copytree(name, folder / name)
        elif name.is_file():
            shutil.copy(name, folder)
