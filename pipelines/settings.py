"""The settings of a run: names that `params.yaml` lacks, and overrides.

DVC's stages read their settings from files: `presets/DATASET/PRESET.yaml` (the preset of a model)
and `params.yaml` (all other settings). Names are added to the `params.yaml` of the workspace.
Overrides are written only into the worktree of an experiment (`experiment.py`).
"""

import shlex
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
Tell = Callable[[str], None]
"""Receives each message of a run."""


class Change(NamedTuple):
    """The new `value` of a dotted `key` in a settings file."""

    file: Path
    key: str
    value: Any


def overridden(overrides: Sequence[str] | str, preset: Path | None = None) -> list[Change]:
    """The changes that texts `KEY=VALUE` or `FILE:KEY=VALUE` ask for, or one text with all of them.

    A key without a file belongs to `preset` if a preset has such a setting (`training.epochs`),
    else to `params.yaml` (`shards.images_per_shard`). An unknown key is a `ConfigError`.
    """
    try:
        texts = shlex.split(overrides) if isinstance(overrides, str) else overrides
    except ValueError as error:
        raise ConfigError(
            f"overrides: {error} in {overrides!r}. Write KEY=VALUE with spaces between."
        ) from None
    return [_change(text, preset) for text in texts]


def _change(text: str, preset: Path | None) -> Change:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ConfigError(f"override '{text}': expected KEY=VALUE, such as training.epochs=2")
    file, _, key = name.rpartition(":")
    if file:
        known = [str(LAYOUT.params), *map(str, sorted(LAYOUT.presets.glob("*/*.yaml")))]
        if file not in known:
            raise ConfigError(f"override '{text}': no settings file '{file}'{nearest(file, known)}")
        path = Path(file)
    else:
        first = key.partition(".")[0]
        owners = dict.fromkeys(Params.model_fields, LAYOUT.params)
        owners |= dict.fromkeys(Preset.model_fields, preset) if preset else {}
        if first not in owners:
            raise ConfigError(
                f"override '{text}': unknown setting '{first}'{nearest(first, owners)}"
            )
        path = owners[first]
    return Change(path, key, yaml_value(value, f"override '{text}'"))


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


def write(changes: Iterable[Change], folder: Path, tell: Tell) -> None:
    """Write changes into the settings files of the checkout `folder`, and tell each change.

    Raises:
        ConfigError: a key or value is wrong.
    """
    by_file: dict[Path, dict[str, Any]] = defaultdict(dict)
    for file, key, value in changes:
        by_file[file][key] = value
        tell(f"{file}: {key} is {value}")
    for file, values in by_file.items():
        if file != LAYOUT.params:
            values["setting"] = read_preset(file, values, check_model).setting
        # Not through a link: a worktree must leave the workspace as it is.
        files.write_text(folder / file, edited(file, values))


def check(folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Run `manymatch check` in the checkout `folder`, which may lack the data of the workspace; its
    error is a `ConfigError`."""
    command = ["manymatch", "check", "--settings"]
    code, output = process.run(command, environment=environment, folder=folder)
    if code:
        last = output[-1] if output else "manymatch check ended without a message. Start it again"
        raise ConfigError(last.removeprefix("error: "))


def add_names(
    wanted: Callable[[], list[Change]], tell: Tell, judge: Callable[[Path], object]
) -> None:
    """Write the changes of `wanted()` into the workspace's `params.yaml` and tell them.

    Args:
        judge: called with a checkout; raises `ConfigError` if its settings do not suit the run.

    Raises:
        ConfigError: `manymatch check` or `judge` refuses them. Nothing is written.
    """
    _LOCK.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(_LOCK):
        if changes := wanted():
            with tempfile.TemporaryDirectory() as temporary:
                copy = Path(temporary)
                files.write_text(copy / ".dvc" / "config", "[core]\nno_scm = true\n")
                for name in (LAYOUT.params, LAYOUT.presets, Path("experiments"), Path("dvc.yaml")):
                    if name.is_dir():
                        shutil.copytree(name, copy / name)
                    elif name.is_file():
                        shutil.copy(name, copy)
                write(changes, copy, tell)
                check(copy)
                judge(copy)
                files.write_through(LAYOUT.params, (copy / LAYOUT.params).read_text())


def tell_differences(tell: Tell) -> None:
    """Name the settings files that differ from the last commit, so that no result is a surprise."""
    command = ["git", "diff", "--name-only", "HEAD", "--", str(LAYOUT.params), str(LAYOUT.presets)]
    answer = subprocess.run(command, capture_output=True, text=True)
    for name in answer.stdout.split():
        tell(f"{name} differs from the last commit; this run uses it as it is")
